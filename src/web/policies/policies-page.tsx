import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ScrollText } from 'lucide-react';
import { useState } from 'react';
import { useIsMissing, useIsUnseen } from '../platform/app/linked-item.ts';
import { ManagedMark } from '../platform/app/managed-mark.tsx';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { PolicyGroup, PolicyPack } from '../platform/app/procedure-types.ts';
import { refresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './policies.module.css';
import { PolicyGroupDetails } from './policy-group-details.tsx';
import { policiesTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/policies');

/** Policy packs, and which updates must run them. */
export function PoliciesPage() {
  const { organization } = route.useParams();
  const { group: chosen } = route.useSearch();
  const mayManage = useMayManage(organization);
  const [isAdding, setIsAdding] = useState(false);
  const next = { getNextPageParam: (page: { next: string | null }) => page.next };
  const groups = useInfiniteQuery(trpc.policies.groups.infiniteQueryOptions({ organization }, next));
  const packs = useInfiniteQuery(trpc.policies.packs.infiniteQueryOptions({ organization }, next));
  const isFound = groups.data?.pages.some(({ items }) => items.some(({ name }) => name === chosen)) ?? false;
  const isUnseen = useIsUnseen(chosen, isFound, groups);
  const linked = useQuery(
    trpc.policies.group.queryOptions({ organization, group: chosen ?? '' }, { enabled: isUnseen }),
  );
  const isMissing = useIsMissing(isUnseen, linked, groups);
  const problem = useProblem(groups, packs);
  if (problem) return <Problem {...problem} />;
  const groupColumns: Column<PolicyGroup>[] = [
    {
      name: policiesTexts.group,
      isTitle: true,
      cell: ({ isDefault, name }) => (
        <span className={styles['inline']}>
          {name}
          {isDefault ? <Badge>{policiesTexts.allOtherStacks}</Badge> : null}
          <ManagedMark organization={organization} kind="PolicyGroup" object={name} />
        </span>
      ),
    },
    { name: policiesTexts.stacks, align: 'right', cell: ({ stackCount }) => stackCount.toLocaleString(numberLocale) },
    { name: policiesTexts.packs, align: 'right', cell: ({ packCount }) => packCount.toLocaleString(numberLocale) },
    {
      name: policiesTexts.actions,
      isActions: true,
      cell: ({ name }) => (
        <Link
          to="."
          search={{ group: name === chosen ? undefined : name }}
          replace
          resetScroll={false}
          activeOptions={{ exact: true }}
          className={styles['open']}
          aria-expanded={name === chosen}
          aria-label={policiesTexts.openOrClose(name === chosen, name)}
        >
          {name === chosen ? policiesTexts.close : policiesTexts.open}
        </Link>
      ),
    },
  ];
  return (
    <Page title={policiesTexts.title} lead={policiesTexts.lead}>
      <p role="status">{isMissing ? policiesTexts.linkedGroupIsGone : null}</p>
      <Section
        title={policiesTexts.groups}
        actions={mayManage ? <Button onClick={() => setIsAdding(true)}>{policiesTexts.addAGroup}</Button> : undefined}
      >
        <Table
          {...pagedList(groups)}
          label={policiesTexts.policyGroups}
          columns={groupColumns}
          keyOf={({ name }) => name}
          empty={<p className={styles['none']}>{policiesTexts.noPolicyGroups}</p>}
          details={(group) =>
            group.name === chosen ? (
              <PolicyGroupDetails
                organization={organization}
                group={group}
                packs={packs.data?.pages.flatMap(({ items }) => items) ?? []}
                onMorePacks={packs.hasNextPage ? () => void packs.fetchNextPage() : null}
                mayManage={mayManage}
              />
            ) : null
          }
        />
      </Section>
      <Section title={policiesTexts.packs} lead={policiesTexts.packsLead}>
        <Table
          {...pagedList(packs)}
          label={policiesTexts.policyPacks}
          columns={packColumns}
          keyOf={({ name }) => name}
          empty={
            <Empty title={policiesTexts.noPacksYet} icon={<ScrollText size={20} />}>
              <p>{policiesTexts.publishOne}</p>
              <Code>{`pulumi policy publish ${organization}`}</Code>
            </Empty>
          }
        />
      </Section>
      {isAdding ? <GroupDialog organization={organization} onClose={() => setIsAdding(false)} /> : null}
    </Page>
  );
}

const packColumns: Column<PolicyPack>[] = [
  {
    name: policiesTexts.pack,
    isTitle: true,
    cell: ({ displayName, name }) => (
      <span className={styles['inline']}>
        {displayName}
        {displayName === name ? null : <code className={styles['minor']}>{name}</code>}
      </span>
    ),
  },
  {
    name: policiesTexts.newest,
    cell: ({ versions: [newest] }) => (newest === undefined ? '' : <code>{newest.tag}</code>),
  },
  {
    name: policiesTexts.published,
    cell: ({ versions: [newest] }) => (newest === undefined ? '' : <Time at={newest.publishedAt} />),
  },
  {
    name: policiesTexts.versions,
    align: 'right',
    cell: ({ versionCount }) => versionCount.toLocaleString(numberLocale),
  },
  {
    name: policiesTexts.enabledIn,
    cell: ({ groups }) =>
      groups.length === 0 ? (
        <span className={styles['none']}>{policiesTexts.noGroup}</span>
      ) : (
        groups.map(({ group, tag }) => `${group} (${tag})`).join(', ')
      ),
  },
];

function GroupDialog({ onClose, organization }: { readonly organization: string; readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const create = useMutation(
    trpc.policies.createGroup.mutationOptions({
      onSuccess: async () => {
        await refresh(trpc.policies.pathKey());
        onClose();
      },
    }),
  );
  return (
    <ActionDialog
      title={policiesTexts.addAPolicyGroup}
      action={policiesTexts.addTheGroup}
      isReady={name.trim() !== ''}
      isPending={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={() => create.mutate({ organization, group: name.trim() })}
    >
      <TextField
        label={policiesTexts.name}
        hint={policiesTexts.nameHint}
        maxLength={100}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
    </ActionDialog>
  );
}

import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ScrollText } from 'lucide-react';
import { useState } from 'react';
import type { PolicyGroup, PolicyPack } from '../platform/app/contract.ts';
import { ManagedMark } from '../platform/app/managed-mark.tsx';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './policies.module.css';
import { PolicyGroupDetails } from './policy-group-details.tsx';

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
  const problem = useProblem(groups, packs);
  if (problem) return <Problem {...problem} />;
  const groupColumns: Column<PolicyGroup>[] = [
    {
      name: 'Group',
      isTitle: true,
      cell: ({ isDefault, name }) => (
        <span className={styles['inline']}>
          {name}
          {isDefault ? <Badge>all other stacks</Badge> : null}
          <ManagedMark organization={organization} kind="PolicyGroup" object={name} />
        </span>
      ),
    },
    { name: 'Stacks', align: 'right', cell: ({ stackCount }) => stackCount.toLocaleString() },
    { name: 'Packs', align: 'right', cell: ({ packCount }) => packCount.toLocaleString() },
    {
      name: 'Actions',
      isActions: true,
      cell: ({ name }) => (
        <Link
          to="."
          search={{ group: name === chosen ? undefined : name }}
          replace
          resetScroll={false}
          className={styles['open']}
          aria-expanded={name === chosen}
          aria-label={`${name === chosen ? 'Close' : 'Open'} ${name}`}
        >
          {name === chosen ? 'Close' : 'Open'}
        </Link>
      ),
    },
  ];
  return (
    <Page title="Policies" lead="Policy packs run during each preview and update of the stacks in their groups.">
      <Section
        title="Groups"
        actions={mayManage ? <Button onClick={() => setIsAdding(true)}>Add a group</Button> : undefined}
      >
        <Table
          {...pagedList(groups)}
          label="Policy groups"
          columns={groupColumns}
          keyOf={({ name }) => name}
          empty={<p className={styles['none']}>No policy groups.</p>}
          details={(group) =>
            group.name === chosen ? (
              <PolicyGroupDetails
                organization={organization}
                group={group}
                packs={packs.data?.pages.flatMap(({ items }) => items) ?? []}
                mayManage={mayManage}
              />
            ) : null
          }
        />
      </Section>
      <Section title="Packs" lead="Published with the CLI; a group runs one version of a pack.">
        <Table
          {...pagedList(packs)}
          label="Policy packs"
          columns={packColumns}
          keyOf={({ name }) => name}
          empty={
            <Empty title="No packs yet" icon={<ScrollText size={20} />}>
              <p>Publish one, and enable it in a group.</p>
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
    name: 'Pack',
    isTitle: true,
    cell: ({ displayName, name }) => (
      <span className={styles['inline']}>
        {displayName}
        {displayName === name ? null : <code className={styles['minor']}>{name}</code>}
      </span>
    ),
  },
  { name: 'Newest', cell: ({ versions: [newest] }) => (newest === undefined ? '' : <code>{newest.tag}</code>) },
  {
    name: 'Published',
    isMinor: true,
    cell: ({ versions: [newest] }) => (newest === undefined ? '' : <Time at={newest.publishedAt} />),
  },
  { name: 'Versions', align: 'right', isMinor: true, cell: ({ versionCount }) => versionCount.toLocaleString() },
  {
    name: 'Enabled in',
    cell: ({ groups }) =>
      groups.length === 0 ? (
        <span className={styles['none']}>no group</span>
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
        await queryClient.invalidateQueries({ queryKey: trpc.policies.pathKey() });
        onClose();
      },
    }),
  );
  return (
    <ActionDialog
      title="Add a policy group"
      action="Add the group"
      isReady={name.trim() !== ''}
      isPending={create.isPending}
      error={create.error}
      onClose={onClose}
      onSubmit={() => create.mutate({ organization, group: name.trim() })}
    >
      <TextField
        label="Name"
        hint="Letters, digits, hyphens, underscores and periods."
        maxLength={100}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
    </ActionDialog>
  );
}

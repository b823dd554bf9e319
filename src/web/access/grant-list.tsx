import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { ManagedMark } from '../platform/app/managed-mark.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { GrantItem } from '../platform/app/procedure-types.ts';
import { RowMenu } from '../platform/app/row-menu.tsx';
import styles from '../platform/app/settings-page.module.css';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { MenuItem } from '../platform/ui/menu.tsx';
import { Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { GrantDialog } from './grant-dialog.tsx';
import type { GrantOwner } from './grant-owner.ts';
import { PermissionSet } from './permission-set.tsx';
import { grantTexts } from './texts.tsx';

/** The list is for admins of the organization. */
export function GrantList({
  lead,
  organization,
  owner,
}: {
  readonly organization: string;
  readonly owner: GrantOwner;
  readonly lead: string;
}) {
  const [asked, setAsked] = useState<'give' | GrantItem | null>(null);
  const query = useInfiniteQuery(
    trpc.grants.list.infiniteQueryOptions({ organization, ...owner }, { getNextPageParam: ({ next }) => next }),
  );
  const problem = useProblem(query);
  const columns: Column<GrantItem>[] = [
    ...('team' in owner ? [] : [toWhom(organization)]),
    ...columnsOfAll(organization),
    {
      name: grantTexts.actions,
      isActions: true,
      cell: (grant) => (
        <RowMenu of={grantTexts.grantOn(grant.stacks)}>
          <MenuItem onSelect={() => setAsked(grant)}>{grantTexts.revoke}</MenuItem>
        </RowMenu>
      ),
    },
  ];
  return (
    <Section
      title={grantTexts.grants}
      lead={lead}
      actions={
        <Button onClick={() => setAsked('give')}>
          <Plus size={16} aria-hidden="true" />
          {grantTexts.add}
        </Button>
      }
    >
      {problem ? (
        <Problem {...problem} />
      ) : (
        <Table
          label={grantTexts.grants}
          columns={columns}
          {...pagedList(query)}
          keyOf={({ id }) => id}
          empty={<p className={styles['note']}>{grantTexts.none}</p>}
        />
      )}
      {asked === 'give' ? (
        <GrantDialog organization={organization} owner={owner} onClose={() => setAsked(null)} />
      ) : asked === null ? null : (
        <TakeDialog organization={organization} grant={asked} onClose={() => setAsked(null)} />
      )}
    </Section>
  );
}

function toWhom(organization: string): Column<GrantItem> {
  return {
    name: grantTexts.grantedTo,
    isTitle: true,
    cell: ({ team, token, user }) =>
      team === undefined ? (
        <span className={styles['name']}>
          {user ?? token?.name}
          {token === undefined ? null : <span className={styles['second']}>{grantTexts.token}</span>}
        </span>
      ) : (
        <span className={styles['name']}>
          <Link to="/$organization/~/teams/$team" params={{ organization, team }}>
            {team}
          </Link>
          <span className={styles['second']}>{grantTexts.team}</span>
        </span>
      ),
  };
}

const columnsOfAll = (organization: string): readonly Column<GrantItem>[] => [
  {
    name: grantTexts.permissions,
    cell: ({ effect, id, permissions, role }) => (
      <span className={styles['badges']}>
        <Badge tone={effect === 'deny' ? 'failure' : 'success'}>
          {effect === 'deny' ? grantTexts.denies : grantTexts.allows}
        </Badge>
        {role === undefined ? null : <span>{grantTexts.ofRole(role.name)}</span>}
        <PermissionSet names={permissions} />
        <ManagedMark organization={organization} kind="Grant" object={id} />
      </span>
    ),
  },
  {
    name: grantTexts.stacks,
    cell: ({ stacks, tag }) => (
      <span className={styles['badges']}>
        <code className={styles['pattern']}>{stacks}</code>
        {tag === undefined ? null : (
          <span className={styles['note']}>
            {grantTexts.withTag(
              <code>
                {tag.name}
                {tag.value === undefined ? '' : `=${tag.value}`}
              </code>,
            )}
          </span>
        )}
      </span>
    ),
  },
  { name: grantTexts.since, align: 'right', cell: ({ created }) => <Time at={created} /> },
];

function TakeDialog({
  grant,
  onClose,
  organization,
}: {
  readonly organization: string;
  readonly grant: GrantItem;
  readonly onClose: () => void;
}) {
  const take = useMutation(trpc.grants.take.mutationOptions(thenRefresh(onClose)));
  const whose = grant.team ?? grant.user ?? grant.token?.name ?? '';
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Grant', object: grant.id }}
      title={grantTexts.revokeTitle}
      description={
        grant.effect === 'deny'
          ? grantTexts.revokeDenialLead(whose, grant.stacks)
          : grantTexts.revokeLead(whose, grant.stacks)
      }
      action={grantTexts.revokeAction}
      isDanger
      error={take.error}
      isPending={take.isPending}
      onSubmit={() => take.mutate({ organization, id: grant.id })}
      onClose={onClose}
    />
  );
}

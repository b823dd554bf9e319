import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { UserPlus, Users } from 'lucide-react';
import { useState } from 'react';
import type { MemberItem } from '../../platform/app/contract.ts';
import { ManagedMark } from '../../platform/app/managed-mark.tsx';
import { useMe } from '../../platform/app/me.ts';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { type MemberSearch, type Role, roles } from '../../platform/app/settings-search.ts';
import { TextFilter } from '../../platform/app/text-filter.tsx';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { SelectField } from '../../platform/ui/field.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { FilterBar, Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { InvitationList } from './invitation-list.tsx';
import { AddMemberDialog, ChangeRoleDialog, InviteMemberDialog, RemoveMemberDialog } from './member-dialogs.tsx';

const route = getRouteApi('/$organization/~/members');

type Asked = { readonly what: 'add' | 'invite' } | { readonly what: 'role' | 'remove'; readonly member: MemberItem };

/** The members of the organization. */
export function MembersPage() {
  const { organization } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayManage = useMayManage(organization);
  const [asked, setAsked] = useState<Asked | null>(null);
  const { role, text } = search;
  const query = useInfiniteQuery(
    trpc.members.list.infiniteQueryOptions(
      { organization, ...(text === undefined ? {} : { text }), ...(role === undefined ? {} : { role }) },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  const mayAdd = useMe()?.mayAddMembers === true && mayManage;
  const mayInvite = mayManage && !mayAdd;
  usePageAction('Add a member', mayAdd ? () => setAsked({ what: 'add' }) : null);
  usePageAction('Invite a member', mayInvite ? () => setAsked({ what: 'invite' }) : null);
  const narrow = (change: Partial<MemberSearch>): void =>
    void navigate({ search: { ...search, ...change }, replace: true });
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns = [...shown(organization), ...(mayManage ? [actions(setAsked)] : [])];
  const close = () => setAsked(null);
  return (
    <Page
      title="Members"
      lead="The members, and the role that each has on every stack of the organization. Teams and grants can add or deny permissions."
      actions={
        mayManage ? (
          <Button kind="main" onClick={() => setAsked({ what: mayAdd ? 'add' : 'invite' })}>
            <UserPlus size={16} aria-hidden="true" />
            {mayAdd ? 'Add a member' : 'Invite a member'}
          </Button>
        ) : null
      }
    >
      <FilterBar>
        <div className={styles['filter']}>
          <TextFilter label="Name" value={text} placeholder="Any" onChange={(value) => narrow({ text: value })} />
        </div>
        <SelectField
          label="Role"
          value={role ?? ''}
          options={[['', 'Any'], ...roles.map((each) => [each, each] as const)]}
          onChange={({ target }) => narrow({ role: (target.value || undefined) as Role | undefined })}
        />
      </FilterBar>
      <Table
        label="Members"
        columns={columns}
        {...pagedList(query)}
        keyOf={({ login }) => login}
        empty={
          <Empty title="No member matches" icon={<Users size={20} />}>
            <p>The filter matches logins, names and roles. An operator creates new users on the server:</p>
            <Code>{`holdfast admin create-user LOGIN --organization ${organization}`}</Code>
          </Empty>
        }
      />
      {mayManage ? <InvitationList organization={organization} /> : null}
      {asked?.what === 'invite' ? <InviteMemberDialog organization={organization} onClose={close} /> : null}
      {asked?.what === 'add' ? <AddMemberDialog organization={organization} onClose={close} /> : null}
      {asked?.what === 'role' ? (
        <ChangeRoleDialog organization={organization} member={asked.member} onClose={close} />
      ) : null}
      {asked?.what === 'remove' ? (
        <RemoveMemberDialog organization={organization} member={asked.member} onClose={close} />
      ) : null}
    </Page>
  );
}

function shown(organization: string): Column<MemberItem>[] {
  return [
    { name: 'Name', isTitle: true, cell: (member) => <MemberName organization={organization} member={member} /> },
    { name: 'Role', cell: ({ role }) => <Badge tone={role === 'admin' ? 'accent' : 'neutral'}>{role}</Badge> },
    {
      name: 'Teams',
      isMinor: true,
      cell: ({ teamCount, teams }) =>
        teamCount === 0 ? (
          <span className={styles['quiet']}>none</span>
        ) : (
          <span className={styles['badges']}>
            {teams.map((team) => (
              <Link key={team} to="/$organization/~/teams/$team" params={{ organization, team }}>
                {team}
              </Link>
            ))}
            {teamCount > teams.length ? `and ${teamCount - teams.length} more` : null}
          </span>
        ),
    },
    { name: 'Since', align: 'right', cell: ({ since }) => <Time at={since} /> },
  ];
}

function actions(ask: (asked: Asked) => void): Column<MemberItem> {
  return {
    name: 'Actions',
    isActions: true,
    cell: (member) => (
      <RowMenu of={member.login}>
        <MenuItem onSelect={() => ask({ what: 'role', member })}>Change the role…</MenuItem>
        <MenuItem onSelect={() => ask({ what: 'remove', member })}>Remove…</MenuItem>
      </RowMenu>
    ),
  };
}

function MemberName({ member, organization }: { readonly organization: string; readonly member: MemberItem }) {
  const me = useMe();
  const { displayName, email, isActive, login } = member;
  return (
    <span className={styles['name']}>
      <span className={styles['badges']}>
        {displayName || login}
        {me?.login === login ? <Badge>you</Badge> : null}
        {isActive ? null : <Badge tone="warning">deactivated</Badge>}
        <ManagedMark organization={organization} kind="Member" object={login} />
      </span>
      <span className={styles['second']}>{[displayName ? login : '', email].filter(Boolean).join(', ')}</span>
    </span>
  );
}

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { UserPlus, Users } from 'lucide-react';
import { useState } from 'react';
import { type MemberSearch, type Role, roles } from '../../platform/app/list-search.ts';
import { ManagedMark } from '../../platform/app/managed-mark.tsx';
import { useMe } from '../../platform/app/me.ts';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { MemberItem } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { TextFilter } from '../../platform/app/text-filter.tsx';
import { trpc } from '../../platform/app/trpc.ts';
import { pageActionTexts } from '../../platform/texts.tsx';
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
import { memberTexts } from '../texts.tsx';
import { InvitationList } from './invitation-list.tsx';
import { AddMemberDialog, ChangeRoleDialog, InviteMemberDialog, RemoveMemberDialog } from './member-dialogs.tsx';

const route = getRouteApi('/$organization/~/members');

type Asked = { readonly what: 'add' | 'invite' } | { readonly what: 'role' | 'remove'; readonly member: MemberItem };

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
  usePageAction(pageActionTexts.addMember, mayAdd ? () => setAsked({ what: 'add' }) : null);
  usePageAction(pageActionTexts.inviteMember, mayInvite ? () => setAsked({ what: 'invite' }) : null);
  const narrow = (change: Partial<MemberSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns = [...shown(organization), ...(mayManage ? [actions(setAsked)] : [])];
  const close = () => setAsked(null);
  return (
    <Page
      title={memberTexts.members}
      lead={memberTexts.lead}
      actions={
        mayManage ? (
          <Button kind="main" onClick={() => setAsked({ what: mayAdd ? 'add' : 'invite' })}>
            <UserPlus size={16} aria-hidden="true" />
            {mayAdd ? pageActionTexts.addMember : pageActionTexts.inviteMember}
          </Button>
        ) : null
      }
    >
      <FilterBar>
        <div className={styles['filter']}>
          <TextFilter
            label={memberTexts.name}
            value={text}
            placeholder={memberTexts.any}
            onChange={(value) => narrow({ text: value })}
          />
        </div>
        <SelectField
          label={memberTexts.role}
          value={role ?? ''}
          options={[['', memberTexts.any], ...roles.map((each) => [each, each] as const)]}
          onChange={({ target }) => narrow({ role: (target.value || undefined) as Role | undefined })}
        />
      </FilterBar>
      <Table
        label={memberTexts.members}
        columns={columns}
        {...pagedList(query)}
        keyOf={({ login }) => login}
        empty={
          <Empty title={memberTexts.noMatch} icon={<Users size={20} />}>
            <p>{memberTexts.noMatchHint}</p>
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
    {
      name: memberTexts.name,
      isTitle: true,
      cell: (member) => <MemberName organization={organization} member={member} />,
    },
    {
      name: memberTexts.role,
      cell: ({ role }) => <Badge tone={role === 'admin' ? 'accent' : 'neutral'}>{role}</Badge>,
    },
    {
      name: memberTexts.teams,
      cell: ({ teamCount, teams }) =>
        teamCount === 0 ? (
          <span className={styles['quiet']}>{memberTexts.noTeams}</span>
        ) : (
          <span className={styles['badges']}>
            {teams.map((team) => (
              <Link key={team} to="/$organization/~/teams/$team" params={{ organization, team }}>
                {team}
              </Link>
            ))}
            {teamCount > teams.length ? memberTexts.andMore(teamCount - teams.length) : null}
          </span>
        ),
    },
    { name: memberTexts.since, align: 'right', cell: ({ since }) => <Time at={since} /> },
  ];
}

function actions(ask: (asked: Asked) => void): Column<MemberItem> {
  return {
    name: memberTexts.actions,
    isActions: true,
    cell: (member) => (
      <RowMenu of={member.login}>
        <MenuItem onSelect={() => ask({ what: 'role', member })}>{memberTexts.changeRole}</MenuItem>
        <MenuItem onSelect={() => ask({ what: 'remove', member })}>{memberTexts.remove}</MenuItem>
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
        {me?.login === login ? <Badge>{memberTexts.you}</Badge> : null}
        {isActive ? null : <Badge tone="warning">{memberTexts.deactivated}</Badge>}
        <ManagedMark organization={organization} kind="Member" object={login} />
      </span>
      <span className={styles['second']}>{[displayName ? login : '', email].filter(Boolean).join(', ')}</span>
    </span>
  );
}

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { GrantList } from '../../access/grant-list.tsx';
import { ManagedMark } from '../../platform/app/managed-mark.tsx';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { TeamMemberItem } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { Page, Section } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { teamTexts } from '../texts.tsx';
import { TokenList } from '../tokens/token-list.tsx';
import { AddToTeamDialog, DeleteTeamDialog, EditTeamDialog, TeamMemberDialog } from './team-dialogs.tsx';

const route = getRouteApi('/$organization/~/teams/$team');

type Asked =
  | { readonly what: 'edit' | 'delete' | 'add' }
  | { readonly what: 'admin' | 'remove'; readonly member: TeamMemberItem };

export function TeamPage() {
  const { organization, team: name } = route.useParams();
  const managesAll = useMayManage(organization);
  const [asked, setAsked] = useState<Asked | null>(null);
  const query = useQuery(trpc.teams.get.queryOptions({ organization, team: name }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const team = query.data;
  if (team === undefined) return <Skeleton width={240} height={24} />;
  const mayManage = managesAll || team.isAdmin;
  const close = () => setAsked(null);
  const ref = { organization, team: name };
  const asking = { ...ref, isManaged: team.isManaged, onClose: close };
  return (
    <Page
      title={
        <>
          {team.displayName} <ManagedMark organization={organization} kind="Team" object={name} />
        </>
      }
      lead={team.description || (team.displayName === name ? undefined : name)}
      actions={
        mayManage ? (
          <>
            <Button onClick={() => setAsked({ what: 'edit' })}>{teamTexts.edit}</Button>
            {managesAll ? (
              <Button kind="danger" onClick={() => setAsked({ what: 'delete' })}>
                {teamTexts.delete}
              </Button>
            ) : null}
          </>
        ) : null
      }
    >
      <Section
        title={teamTexts.members}
        lead={teamTexts.membersLead}
        actions={
          mayManage ? (
            <Button onClick={() => setAsked({ what: 'add' })}>
              <UserPlus size={16} aria-hidden="true" />
              {teamTexts.add}
            </Button>
          ) : null
        }
      >
        <TeamMembers team={ref} mayManage={mayManage} onAsk={setAsked} />
      </Section>
      {managesAll ? <GrantList organization={organization} owner={{ team: name }} lead={teamTexts.grantsLead} /> : null}
      {mayManage ? (
        <Section title={teamTexts.tokens} lead={teamTexts.tokensLead}>
          <TokenList owner={{ of: 'team', ...ref }} />
        </Section>
      ) : null}
      {asked?.what === 'edit' ? <EditTeamDialog {...asking} shown={team} /> : null}
      {asked?.what === 'delete' ? <DeleteTeamDialog {...asking} shown={team} /> : null}
      {asked?.what === 'add' ? <AddToTeamDialog {...asking} /> : null}
      {asked?.what === 'admin' || asked?.what === 'remove' ? (
        <TeamMemberDialog {...asking} what={asked.what} member={asked.member} />
      ) : null}
    </Page>
  );
}

function TeamMembers({
  mayManage,
  onAsk,
  team,
}: {
  readonly team: { readonly organization: string; readonly team: string };
  readonly mayManage: boolean;
  readonly onAsk: (asked: Asked) => void;
}) {
  const query = useInfiniteQuery(
    trpc.teams.members.infiniteQueryOptions(team, { getNextPageParam: ({ next }) => next }),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const actions: Column<TeamMemberItem> = {
    name: teamTexts.actions,
    isActions: true,
    cell: (member) => (
      <RowMenu of={member.login}>
        <MenuItem onSelect={() => onAsk({ what: 'admin', member })}>
          {member.isAdmin ? teamTexts.makeOrdinary : teamTexts.makeAdmin}
        </MenuItem>
        <MenuItem onSelect={() => onAsk({ what: 'remove', member })}>{teamTexts.remove}</MenuItem>
      </RowMenu>
    ),
  };
  return (
    <Table
      label={teamTexts.membersOfTeam}
      columns={mayManage ? [...memberColumns, actions] : memberColumns}
      {...pagedList(query)}
      keyOf={({ login }) => login}
      empty={<p className={styles['note']}>{teamTexts.noMembers}</p>}
    />
  );
}

const memberColumns: readonly Column<TeamMemberItem>[] = [
  {
    name: teamTexts.name,
    isTitle: true,
    cell: ({ displayName, isActive, login }) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {displayName || login}
          {isActive ? null : <Badge tone="warning">{teamTexts.deactivated}</Badge>}
        </span>
        {displayName ? <span className={styles['second']}>{login}</span> : null}
      </span>
    ),
  },
  {
    name: teamTexts.role,
    cell: ({ isAdmin }) => (
      <Badge tone={isAdmin ? 'accent' : 'neutral'}>{isAdmin ? teamTexts.admin : teamTexts.member}</Badge>
    ),
  },
];

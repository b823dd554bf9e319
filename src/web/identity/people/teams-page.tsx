import { keepPreviousData, useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Plus, UsersRound } from 'lucide-react';
import { useState } from 'react';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { TeamItem } from '../../platform/app/procedure-types.ts';
import styles from '../../platform/app/settings-page.module.css';
import { TextFilter } from '../../platform/app/text-filter.tsx';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { TextArea, TextField } from '../../platform/ui/field.tsx';
import { numberLocale } from '../../platform/ui/locale.ts';
import { ManagedBadge } from '../../platform/ui/managed-badge.tsx';
import { FilterBar, Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { teamsTexts } from '../texts.tsx';

const route = getRouteApi('/$organization/~/teams');

export function TeamsPage() {
  const { organization } = route.useParams();
  const { text } = route.useSearch();
  const navigate = route.useNavigate();
  const mayManage = useMayManage(organization);
  const [isCreating, setIsCreating] = useState(false);
  const query = useInfiniteQuery(
    trpc.teams.list.infiniteQueryOptions(
      { organization, ...(text === undefined ? {} : { text }) },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const items = query.data?.pages.flatMap(({ items: each }) => each);
  const isFiltered = text !== undefined;
  return (
    <Page
      title={teamsTexts.teams}
      lead={teamsTexts.lead}
      actions={
        mayManage ? (
          <Button kind="main" onClick={() => setIsCreating(true)}>
            <Plus size={16} aria-hidden="true" />
            {teamsTexts.create}
          </Button>
        ) : null
      }
    >
      {items?.length === 0 && !isFiltered ? null : (
        <FilterBar>
          <div className={styles['filter']}>
            <TextFilter
              label={teamsTexts.name}
              value={text}
              placeholder={teamsTexts.any}
              onChange={(value) => void navigate({ search: { text: value }, replace: true })}
            />
          </div>
        </FilterBar>
      )}
      <Table
        label={teamsTexts.teams}
        columns={columnsOf(organization)}
        {...pagedList(query)}
        keyOf={({ name }) => name}
        empty={
          <Empty title={isFiltered ? teamsTexts.noMatch : teamsTexts.none} icon={<UsersRound size={20} />}>
            <p>{isFiltered ? teamsTexts.noMatchHint : teamsTexts.noneHint}</p>
            {isFiltered ? null : <Code>{`holdfast admin team create NAME --organization ${organization}`}</Code>}
          </Empty>
        }
      />
      {isCreating ? <CreateTeamDialog organization={organization} onClose={() => setIsCreating(false)} /> : null}
    </Page>
  );
}

function columnsOf(organization: string): readonly Column<TeamItem>[] {
  return [
    {
      name: teamsTexts.name,
      isTitle: true,
      cell: ({ displayName, isAdmin, isIn, isManaged, name }) => (
        <span className={styles['name']}>
          <span className={styles['badges']}>
            <Link to="/$organization/~/teams/$team" params={{ organization, team: name }}>
              {displayName}
            </Link>
            {isIn ? <Badge>{isAdmin ? teamsTexts.youAreAdmin : teamsTexts.youAreMember}</Badge> : null}
            {isManaged ? <ManagedBadge /> : null}
          </span>
          {displayName === name ? null : <span className={styles['second']}>{name}</span>}
        </span>
      ),
    },
    {
      name: teamsTexts.description,
      cell: ({ description }) => <span className={styles['second']}>{description}</span>,
    },
    { name: teamsTexts.members, align: 'right', cell: ({ members }) => members.toLocaleString(numberLocale) },
  ];
}

function CreateTeamDialog({ onClose, organization }: { readonly organization: string; readonly onClose: () => void }) {
  const navigate = route.useNavigate();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  const [description, setDescription] = useState('');
  const team = name.trim();
  const create = useMutation(trpc.teams.create.mutationOptions(thenRefresh()));
  const submit = (): void =>
    create.mutate(
      { organization, name: team, displayName: displayName.trim(), description },
      { onSuccess: () => void navigate({ to: '/$organization/~/teams/$team', params: { organization, team } }) },
    );
  return (
    <ActionDialog
      title={teamsTexts.create}
      description={teamsTexts.createLead}
      action={teamsTexts.createAction}
      error={create.error}
      isPending={create.isPending}
      isReady={team !== ''}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={teamsTexts.name}
        value={name}
        maxLength={100}
        required
        hint={teamsTexts.nameHint}
        onChange={({ target }) => setName(target.value)}
      />
      <TextField
        label={teamsTexts.displayName}
        value={displayName}
        maxLength={200}
        placeholder={team}
        onChange={({ target }) => setDisplayName(target.value)}
      />
      <TextArea
        label={teamsTexts.description}
        value={description}
        maxLength={2_000}
        onChange={({ target }) => setDescription(target.value)}
      />
    </ActionDialog>
  );
}

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import type { TokenItem } from '../../platform/app/contract.ts';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { CheckboxField } from '../../platform/ui/field.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { FilterBar } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { CreateTokenDialog, RevokeTokenDialog, RotateTokenDialog } from './token-dialogs.tsx';
import type { TokenOwner } from './token-owner.ts';

type Asked = { readonly what: 'create' } | { readonly what: 'revoke' | 'rotate'; readonly token: TokenItem };

/** The tokens of an owner, with their actions. */
export function TokenList({
  onShowRuns,
  owner,
  showsRuns = false,
}: {
  readonly owner: TokenOwner;
  /** Also lists tokens of CI runs, with a switch for them. */
  readonly showsRuns?: boolean;
  readonly onShowRuns?: (shows: boolean) => void;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  usePageAction('Create a token', () => setAsked({ what: 'create' }));
  const query = useTokens(owner, showsRuns);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<TokenItem>[] = [
    ...columnsOfAll,
    {
      name: 'Actions',
      isActions: true,
      cell: (token) => (
        <>
          {token.mayRotate ? (
            <Button
              kind="quiet"
              size="small"
              aria-label={`Rotate ${token.name ?? token.description}`}
              onClick={() => setAsked({ what: 'rotate', token })}
            >
              Rotate
            </Button>
          ) : null}
          <RowMenu of={token.name ?? token.description}>
            <MenuItem onSelect={() => setAsked({ what: 'revoke', token })}>Revoke…</MenuItem>
          </RowMenu>
        </>
      ),
    },
  ];
  return (
    <>
      <FilterBar>
        <Button kind={owner.of === 'team' ? 'plain' : 'main'} onClick={() => setAsked({ what: 'create' })}>
          <Plus size={16} aria-hidden="true" />
          Create a token
        </Button>
        {onShowRuns === undefined ? null : (
          <CheckboxField
            label="Include tokens of CI runs"
            checked={showsRuns}
            onChange={({ target }) => onShowRuns(target.checked)}
          />
        )}
      </FilterBar>
      <Table
        label="Tokens"
        columns={columns}
        {...pagedList(query)}
        keyOf={({ id }) => id}
        empty={<NoTokens owner={owner} />}
      />
      {asked?.what === 'create' ? <CreateTokenDialog owner={owner} onClose={() => setAsked(null)} /> : null}
      {asked?.what === 'rotate' ? (
        <RotateTokenDialog owner={owner} token={asked.token} onClose={() => setAsked(null)} />
      ) : null}
      {asked?.what === 'revoke' ? (
        <RevokeTokenDialog owner={owner} token={asked.token} onClose={() => setAsked(null)} />
      ) : null}
    </>
  );
}

function useTokens(owner: TokenOwner, withCiTokens: boolean) {
  const options = {
    getNextPageParam: ({ next }: { readonly next: string | null }) => next,
    placeholderData: keepPreviousData,
  };
  const { of: _of, ...names } = owner;
  const mine = useInfiniteQuery(trpc.tokens.mine.infiniteQueryOptions({}, { ...options, enabled: owner.of === 'me' }));
  const ofTeam = useInfiniteQuery(
    trpc.tokens.ofTeam.infiniteQueryOptions(
      { organization: '', team: '', ...names, withCiTokens: true },
      { ...options, enabled: owner.of === 'team' },
    ),
  );
  const ofOrganization = useInfiniteQuery(
    trpc.tokens.list.infiniteQueryOptions(
      { organization: '', ...names, withCiTokens },
      { ...options, enabled: owner.of === 'organization' },
    ),
  );
  return { me: mine, team: ofTeam, organization: ofOrganization }[owner.of];
}

function NoTokens({ owner }: { readonly owner: TokenOwner }) {
  if (owner.of === 'team') return <p className={styles['note']}>None yet.</p>;
  return (
    <Empty title="No tokens yet" icon={<KeyRound size={20} />}>
      {owner.of === 'me' ? (
        <>
          <p>The CLI creates one when you sign in:</p>
          <Code>{`pulumi login ${location.origin}`}</Code>
        </>
      ) : (
        <p>
          CI does not need any of these if its runs are trusted: see the trust policies. For other machines, a token of
          the organization belongs to no user, and does not end when a member leaves.
        </p>
      )}
    </Empty>
  );
}

const columnsOfAll: readonly Column<TokenItem>[] = [
  {
    name: 'Name',
    isTitle: true,
    cell: ({ description, id, isCiToken, isProvisioning, name }) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {name ?? (description || id)}
          {isCiToken ? <Badge>of a CI run</Badge> : null}
          {isProvisioning ? <Badge>identity provider</Badge> : null}
        </span>
        <span className={styles['second']}>{name === null ? '' : description}</span>
      </span>
    ),
  },
  { name: 'Permissions', cell: (token) => <Power token={token} /> },
  {
    name: 'Last used',
    align: 'right',
    cell: ({ lastUsedAt }) =>
      lastUsedAt === null ? <span className={styles['quiet']}>never</span> : <Time at={lastUsedAt} />,
  },
  {
    name: 'Created',
    align: 'right',
    isMinor: true,
    cell: ({ createdAt, createdBy }) => (
      <>
        <Time at={createdAt} />
        {createdBy === null ? null : <span className={styles['second']}> by {createdBy}</span>}
      </>
    ),
  },
  {
    name: 'Expires',
    align: 'right',
    cell: ({ expiresAt, previousUntil }) => (
      <>
        {expiresAt === null ? <span className={styles['quiet']}>never</span> : <Time at={expiresAt} />}
        {previousUntil === null ? null : (
          <span className={styles['second']}>
            {' '}
            previous value: <Time at={previousUntil} />
          </span>
        )}
      </>
    ),
  },
];

function Power({ token: { kind, role, scopes } }: { readonly token: TokenItem }) {
  if (scopes !== null)
    return scopes.length === 0
      ? 'only its grants'
      : scopes.map(({ permissions, stacks }) => (
          <div key={stacks + permissions.join()}>
            {permissions.join(', ')} on <code className={styles['pattern']}>{stacks}</code>
          </div>
        ));
  if (kind === 'personal') return 'all your permissions';
  if (kind === 'team') return 'all permissions of the team';
  return role === null ? 'only its grants' : `all permissions of the role ${role}`;
}

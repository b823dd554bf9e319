import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { usePageAction } from '../../platform/app/page-actions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { TokenItem } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { trpc } from '../../platform/app/trpc.ts';
import { pageActionTexts } from '../../platform/texts.tsx';
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
import { tokenTexts } from '../texts.tsx';
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
  readonly showsRuns?: boolean;
  readonly onShowRuns?: (shows: boolean) => void;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  usePageAction(pageActionTexts.createToken, () => setAsked({ what: 'create' }));
  const query = useTokens(owner, showsRuns);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<TokenItem>[] = [
    ...columnsOfAll,
    {
      name: tokenTexts.actions,
      isActions: true,
      cell: (token) => (
        <>
          {token.mayRotate ? (
            <Button
              kind="quiet"
              size="small"
              aria-label={tokenTexts.rotateToken(token.name ?? token.description)}
              onClick={() => setAsked({ what: 'rotate', token })}
            >
              {tokenTexts.rotate}
            </Button>
          ) : null}
          <RowMenu of={token.name ?? token.description}>
            <MenuItem onSelect={() => setAsked({ what: 'revoke', token })}>{tokenTexts.revoke}</MenuItem>
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
          {tokenTexts.create}
        </Button>
        {onShowRuns === undefined ? null : (
          <CheckboxField
            label={tokenTexts.includeRuns}
            checked={showsRuns}
            onChange={({ target }) => onShowRuns(target.checked)}
          />
        )}
      </FilterBar>
      <Table
        label={tokenTexts.tokens}
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
  if (owner.of === 'team') return <p className={styles['note']}>{tokenTexts.noneOfTeam}</p>;
  return (
    <Empty title={tokenTexts.none} icon={<KeyRound size={20} />}>
      {owner.of === 'me' ? (
        <>
          <p>{tokenTexts.noneOfMine}</p>
          <Code>{`pulumi login ${location.origin}`}</Code>
        </>
      ) : (
        <p>{tokenTexts.noneOfOrganization}</p>
      )}
    </Empty>
  );
}

const columnsOfAll: readonly Column<TokenItem>[] = [
  {
    name: tokenTexts.name,
    isTitle: true,
    cell: ({ description, id, isCiToken, isProvisioning, name }) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {name ?? (description || id)}
          {isCiToken ? <Badge>{tokenTexts.ofRun}</Badge> : null}
          {isProvisioning ? <Badge>{tokenTexts.identityProvider}</Badge> : null}
        </span>
        <span className={styles['second']}>{name === null ? '' : description}</span>
      </span>
    ),
  },
  { name: tokenTexts.permissions, cell: (token) => <Power token={token} /> },
  {
    name: tokenTexts.lastUsed,
    align: 'right',
    cell: ({ lastUsedAt }) =>
      lastUsedAt === null ? <span className={styles['quiet']}>{tokenTexts.never}</span> : <Time at={lastUsedAt} />,
  },
  {
    name: tokenTexts.created,
    align: 'right',
    cell: ({ createdAt, createdBy }) => (
      <>
        <Time at={createdAt} />
        {createdBy === null ? null : <span className={styles['second']}> {tokenTexts.byUser(createdBy)}</span>}
      </>
    ),
  },
  {
    name: tokenTexts.expires,
    align: 'right',
    cell: ({ expiresAt, previousUntil }) => (
      <>
        {expiresAt === null ? <span className={styles['quiet']}>{tokenTexts.never}</span> : <Time at={expiresAt} />}
        {previousUntil === null ? null : (
          <span className={styles['second']}> {tokenTexts.previousValue(<Time at={previousUntil} />)}</span>
        )}
      </>
    ),
  },
];

function Power({ token: { kind, role, scopes } }: { readonly token: TokenItem }) {
  if (scopes !== null)
    return scopes.length === 0
      ? tokenTexts.onlyGrants
      : scopes.map(({ permissions, stacks }) => (
          <div key={stacks + permissions.join()}>
            {tokenTexts.onStacks(permissions.join(', '), <code className={styles['pattern']}>{stacks}</code>)}
          </div>
        ));
  if (kind === 'personal') return tokenTexts.allYours;
  if (kind === 'team') return tokenTexts.allOfTeam;
  return role === null ? tokenTexts.onlyGrants : tokenTexts.allOfRole(role);
}

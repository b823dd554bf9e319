import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { ChevronDown, ChevronRight, CircleCheck, CircleMinus } from 'lucide-react';
import { useState } from 'react';
import { type Permission, permissionLabels, reasonOf } from '../access/access-labels.ts';
import { GrantList } from '../access/grant-list.tsx';
import { PermissionSet } from '../access/permission-set.tsx';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { AccessHolder, GrantItem, StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { LegalHold } from './legal-hold.tsx';
import { stackAccessTexts } from './stack/texts.tsx';
import styles from './stack-access.module.css';

export function StackAccess({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const { organization, project } = stack;
  const mayManage = useMayManage(organization);
  const seesAll = details.permissions.includes('manage');
  return (
    <>
      <OwnAccess stack={stack} />
      <LegalHold stack={stack} mayManage={seesAll} />
      {seesAll ? <Holders stack={stack} holders="users" /> : null}
      {seesAll ? <Holders stack={stack} holders="tokens" /> : null}
      {mayManage ? (
        <GrantList
          organization={organization}
          owner={{ on: { project, stack: stack.stack } }}
          lead={stackAccessTexts.grantsLead}
        />
      ) : null}
    </>
  );
}

function OwnAccess({ stack }: { readonly stack: StackRef }) {
  const query = useQuery(trpc.access.mine.queryOptions(stack));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <Section title={stackAccessTexts.yours}>
      {query.data === undefined ? (
        <Skeleton width={360} />
      ) : query.data === null ? (
        <p>{stackAccessTexts.nothing}</p>
      ) : (
        <Decisions holder={query.data.holder} grants={query.data.grants} />
      )}
    </Section>
  );
}

function Holders({ holders, stack }: { readonly stack: StackRef; readonly holders: 'users' | 'tokens' }) {
  const { organization, project, stack: name } = stack;
  const [open, setOpen] = useState<string | null>(null);
  const query = useInfiniteQuery(
    trpc.access.list.infiniteQueryOptions(
      { organization, project, stack: name, holders },
      { getNextPageParam: ({ next }) => next },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const grants = query.data?.pages.flatMap((page) => page.grants) ?? [];
  const columns: readonly Column<AccessHolder>[] = [
    { name: stackAccessTexts.name, isTitle: true, cell: (holder) => <HolderName holder={holder} /> },
    {
      name: stackAccessTexts.role,
      cell: ({ role }) =>
        role === undefined ? null : <Badge tone={role === 'admin' ? 'accent' : 'neutral'}>{role}</Badge>,
    },
    { name: stackAccessTexts.permissions, cell: ({ permissions }) => <PermissionSet names={permissions} /> },
    {
      name: stackAccessTexts.grantedBy,
      isActions: true,
      cell: (holder) => (
        <Button
          kind="quiet"
          size="icon"
          aria-label={stackAccessTexts.why(titleOf(holder))}
          aria-expanded={open === keyOf(holder)}
          onClick={() => setOpen(open === keyOf(holder) ? null : keyOf(holder))}
        >
          {open === keyOf(holder) ? <ChevronDown size={16} /> : <ChevronRight size={16} />}
        </Button>
      ),
    },
  ];
  const { lead, title } = stackAccessTexts.holders[holders];
  return (
    <Section title={title} lead={lead}>
      <Table
        label={title}
        columns={columns}
        {...pagedList(query)}
        keyOf={keyOf}
        details={(holder) => (open === keyOf(holder) ? <Decisions holder={holder} grants={grants} /> : undefined)}
        empty={<p className={styles['none']}>{stackAccessTexts.noTokens}</p>}
      />
    </Section>
  );
}

function keyOf({ token, user }: AccessHolder): string {
  return token?.id ?? user?.githubLogin ?? '';
}

function titleOf({ token, user }: AccessHolder): string {
  return user?.name ?? token?.name ?? '';
}

function HolderName({ holder }: { readonly holder: AccessHolder }) {
  const { token, user } = holder;
  const title = titleOf(holder);
  const second =
    token === undefined ? user?.githubLogin : token.team === undefined ? token.kind : stackAccessTexts.team(token.team);
  return (
    <span className={styles['name']}>
      {title}
      {second === title ? null : <span className={styles['second']}>{second}</span>}
    </span>
  );
}

function Decisions({
  grants,
  holder,
}: {
  readonly holder: Pick<AccessHolder, 'decisions' | 'role'>;
  readonly grants: readonly GrantItem[];
}) {
  return (
    <ul className={styles['decisions']}>
      {holder.decisions.map(({ allowed, grants: ids, permission, reason }) => (
        <li key={permission} className={allowed ? styles['allowed'] : styles['refused']}>
          {allowed ? <CircleCheck size={16} aria-hidden="true" /> : <CircleMinus size={16} aria-hidden="true" />}
          <span>
            <b>{permission}</b> <span className={styles['second']}>{permissionLabels[permission as Permission]}</span>
          </span>
          <span className={styles['reason']}>
            <span className="unseen">{allowed ? stackAccessTexts.allowed : stackAccessTexts.notAllowed}</span>
            {reason === 'role' && holder.role !== undefined
              ? stackAccessTexts.byRole(holder.role)
              : reasonOf({ allowed, reason })}
            {reason === 'grants' || reason === 'denied'
              ? grants
                  .filter(({ id }) => ids.includes(id))
                  .map((grant) => (
                    <span key={grant.id}>
                      {' '}
                      {stackAccessTexts.onStacks(grantText(grant), <code>{grant.stacks}</code>)}
                    </span>
                  ))
              : null}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The grantee of a grant, and its permissions. */
function grantText({ role, team, user }: GrantItem): string {
  const whom =
    team !== undefined
      ? stackAccessTexts.toTeam(team)
      : user === undefined
        ? stackAccessTexts.toToken
        : stackAccessTexts.toUser(user);
  return role === undefined ? whom : stackAccessTexts.ofRole(role.name, whom);
}

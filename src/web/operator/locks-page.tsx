import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LockOpen, TriangleAlert } from 'lucide-react';
import { useEffect } from 'react';
import type { OperatorLock, OperatorSlow } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { duration } from '../platform/ui/relative-time.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Since, Time } from '../platform/ui/time.tsx';
import { StatusBadge } from '../updates/status-badge.tsx';
import { viewKind } from '../updates/update-status.ts';

const refreshMs = 10_000;
const slowRefreshMs = 60_000;

/** The locks of all organizations, and the slowest updates. */
export function LocksPage() {
  const locks = useInfiniteQuery(
    trpc.operator.locks.infiniteQueryOptions(
      {},
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData, refetchInterval: every(refreshMs) },
    ),
  );
  const slow = useQuery(trpc.operator.slow.queryOptions(undefined, { refetchInterval: every(slowRefreshMs) }));
  useEffect(() => {
    document.title = 'Locks - Holdfast';
  }, []);
  const problem = useProblem(locks);
  if (problem) return <Problem {...problem} />;
  return (
    <Page title="Locks" lead="Updates that hold a lock, in all organizations, the oldest first.">
      <Table
        label="Locks"
        columns={lockColumns}
        {...pagedList(locks)}
        keyOf={({ updateId }) => updateId}
        empty={
          <Empty title="No stack is locked" icon={<LockOpen size={20} />}>
            <p>No update is running: a good moment for maintenance.</p>
          </Empty>
        }
      />
      <Section title="Slowest of the last 7 days" lead="The longest update per stack and day.">
        <Table
          label="Slow updates"
          columns={slowColumns}
          items={slow.data?.items}
          keyOf={({ updateId }) => updateId}
          empty={<p>No update has ended recently.</p>}
        />
      </Section>
    </Page>
  );
}

function stackOf<Item extends Pick<OperatorLock, 'organization' | 'project' | 'stack'>>(): Column<Item> {
  return {
    name: 'Stack',
    isTitle: true,
    cell: ({ organization, project, stack }) => (
      <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
        {organization}/{project}/{stack}
      </Link>
    ),
  };
}

const lockColumns: readonly Column<OperatorLock>[] = [
  stackOf(),
  { name: 'Owner', cell: ({ by, kind }) => `${viewKind({ kind })}${by === null ? '' : ` by ${by}`}` },
  { name: 'From', cell: ({ ciUrl }) => (ciUrl === null ? '–' : <ExternalLink href={ciUrl}>CI run</ExternalLink>) },
  {
    name: 'Lease',
    cell: ({ expiresAt, isExpired }) =>
      isExpired ? (
        <Badge tone="warning" icon={<TriangleAlert aria-hidden="true" />}>
          Expired, ends soon
        </Badge>
      ) : expiresAt === null ? (
        '–'
      ) : (
        <>
          ends <Time at={expiresAt} />
        </>
      ),
  },
  { name: 'Waiting', align: 'right', cell: ({ waiting }) => (waiting === 0 ? '–' : waiting.toLocaleString()) },
  { name: 'Age', align: 'right', cell: ({ since }) => <Since at={since} /> },
];

const slowColumns: readonly Column<OperatorSlow>[] = [
  stackOf(),
  {
    name: 'Update',
    cell: ({ by, kind, organization, project, stack, updateId }) => (
      <Link to="/$organization/$project/$stack/previews/$updateId" params={{ organization, project, stack, updateId }}>
        {viewKind({ kind })}
        {by === null ? '' : ` by ${by}`}
      </Link>
    ),
  },
  { name: 'Result', cell: ({ status }) => <StatusBadge status={status} /> },
  { name: 'Ended', align: 'right', cell: ({ endedAt }) => <Time at={endedAt} /> },
  { name: 'Duration', align: 'right', cell: ({ lastedMs }) => duration(lastedMs / 1000) },
];

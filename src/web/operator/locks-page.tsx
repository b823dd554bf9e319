import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LockOpen, TriangleAlert } from 'lucide-react';
import { useEffect } from 'react';
import { PartProblem, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorLock, OperatorSlow } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { duration } from '../platform/ui/relative-time.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Since, Time } from '../platform/ui/time.tsx';
import { StatusBadge } from '../updates/status-badge.tsx';
import { viewKind } from '../updates/update-status.ts';
import { lockTexts } from './texts.tsx';

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
    document.title = pageTexts.tabTitle(pageTexts.locks);
  }, []);
  const problem = useProblem(locks);
  const slowProblem = useProblem(slow);
  if (problem) return <Problem {...problem} />;
  return (
    <Page title={lockTexts.locks} lead={lockTexts.lead}>
      <Table
        label={lockTexts.locks}
        columns={lockColumns}
        {...pagedList(locks)}
        keyOf={({ updateId }) => updateId}
        empty={
          <Empty title={lockTexts.none} icon={<LockOpen size={20} />}>
            <p>{lockTexts.noneHint}</p>
          </Empty>
        }
      />
      <Section title={lockTexts.slowest} lead={lockTexts.slowestLead}>
        {slowProblem ? (
          <PartProblem {...slowProblem} />
        ) : (
          <Table
            label={lockTexts.slowUpdates}
            columns={slowColumns}
            items={slow.data?.items}
            keyOf={({ updateId }) => updateId}
            empty={<p>{lockTexts.noUpdates}</p>}
          />
        )}
      </Section>
    </Page>
  );
}

function stackOf<Item extends Pick<OperatorLock, 'organization' | 'project' | 'stack'>>(): Column<Item> {
  return {
    name: lockTexts.stack,
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
  { name: lockTexts.owner, cell: ({ by, kind }) => lockTexts.ownedBy(viewKind({ kind }), by) },
  {
    name: lockTexts.from,
    cell: ({ ciUrl }) => (ciUrl === null ? '–' : <ExternalLink href={ciUrl}>{lockTexts.ciRun}</ExternalLink>),
  },
  {
    name: lockTexts.lease,
    cell: ({ expiresAt, isExpired }) =>
      isExpired ? (
        <Badge tone="warning" icon={<TriangleAlert aria-hidden="true" />}>
          {lockTexts.expired}
        </Badge>
      ) : expiresAt === null ? (
        '–'
      ) : (
        lockTexts.ends(<Time at={expiresAt} />)
      ),
  },
  {
    name: lockTexts.waiting,
    align: 'right',
    cell: ({ waiting }) => (waiting === 0 ? '–' : waiting.toLocaleString(numberLocale)),
  },
  { name: lockTexts.age, align: 'right', cell: ({ since }) => <Since at={since} /> },
];

const slowColumns: readonly Column<OperatorSlow>[] = [
  stackOf(),
  {
    name: lockTexts.update,
    cell: ({ by, kind, organization, project, stack, updateId }) => (
      <Link to="/$organization/$project/$stack/previews/$updateId" params={{ organization, project, stack, updateId }}>
        {lockTexts.ownedBy(viewKind({ kind }), by)}
      </Link>
    ),
  },
  { name: lockTexts.result, cell: ({ status }) => <StatusBadge status={status} /> },
  { name: lockTexts.ended, align: 'right', cell: ({ endedAt }) => <Time at={endedAt} /> },
  { name: lockTexts.duration, align: 'right', cell: ({ lastedMs }) => duration(lastedMs / 1000) },
];

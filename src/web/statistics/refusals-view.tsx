import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Ban, OctagonX, X } from 'lucide-react';
import type { CiDays } from '../platform/app/ci-search.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { CiRefusal, CiStatistics } from '../platform/app/procedure-types.ts';
import { stackColumn } from '../platform/app/stack-link.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { pagedList } from '../platform/ui/paged-list.ts';
import { duration } from '../platform/ui/relative-time.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { TextWithTimes, Time } from '../platform/ui/time.tsx';
import { shortCommit, viewKind } from '../updates/update-status.ts';
import { isStop, viewReason } from './refusal-labels.ts';
import styles from './refusals-view.module.css';
import { refusalsTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/ci');
const refreshMs = 30_000;

export function RefusalsView({
  days,
  statistics,
  isCounting,
  organization,
}: {
  readonly organization: string;
  readonly days: CiDays;
  readonly statistics: CiStatistics | undefined;
  /** While the statistics are loading: the list below would shift. */
  readonly isCounting: boolean;
}) {
  const { project, reason } = route.useSearch();
  const query = useInfiniteQuery(
    trpc.ci.refusals.infiniteQueryOptions(
      {
        ...{ organization, days },
        ...(project === undefined ? {} : { project }),
        ...(reason === undefined ? {} : { reasons: [reason] }),
      },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData, refetchInterval: every(refreshMs) },
    ),
  );
  const list = pagedList(query);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <>
      {isCounting ? null : <Reasons statistics={statistics} />}
      <Table
        label={refusalsTexts.refusedRuns}
        columns={columns(organization)}
        {...list}
        items={isCounting ? undefined : list.items}
        keyOf={({ id }) => id}
        details={({ message }) => (
          <p className={styles['message']}>
            <TextWithTimes text={message} />
          </p>
        )}
        empty={
          <Empty title={refusalsTexts.noRunRefused(days)} icon={<Ban size={20} />}>
            <p>{refusalsTexts.noRunRefusedHint}</p>
          </Empty>
        }
      />
    </>
  );
}

function Reasons({ statistics }: { readonly statistics: CiStatistics | undefined }) {
  const { project, reason } = route.useSearch();
  const counts = statistics?.refusals ?? [];
  if (counts.length === 0 && project === undefined && reason === undefined) return null;
  const isListed = reason === undefined || counts.some((each) => each.reason === reason);
  return (
    <nav className={styles['reasons']} aria-label={refusalsTexts.reasons}>
      {[...counts, ...(isListed ? [] : [{ reason: reason as string, times: 0 }])].map((each) => (
        <Link
          key={each.reason}
          to="."
          search={(before) => ({ ...before, reason: each.reason === reason ? undefined : each.reason })}
          className={styles['reason']}
          activeOptions={{ exact: true }}
          activeProps={{}}
          aria-current={each.reason === reason ? 'true' : undefined}
        >
          {viewReason(each.reason)}
          <span className={styles['count']}>{each.times.toLocaleString(numberLocale)}</span>
        </Link>
      ))}
      {project === undefined ? null : (
        <Link
          to="."
          search={(before) => ({ ...before, project: undefined })}
          className={styles['reason']}
          activeOptions={{ exact: true }}
          activeProps={{}}
          aria-label={refusalsTexts.allProjects(project)}
        >
          {refusalsTexts.project(project)}
          <X size={13} aria-hidden="true" />
        </Link>
      )}
    </nav>
  );
}

function columns(organization: string): readonly Column<CiRefusal>[] {
  return [
    stackColumn(organization),
    {
      name: refusalsTexts.reason,
      cell: ({ reason, times }) => (
        <Badge
          tone={isStop(reason) ? 'failure' : reason === 'superseded' ? 'neutral' : 'warning'}
          icon={isStop(reason) ? <OctagonX aria-hidden="true" /> : <Ban aria-hidden="true" />}
        >
          {viewReason(reason)}
          {times === 1 ? '' : ` × ${times.toLocaleString(numberLocale)}`}
        </Badge>
      ),
    },
    {
      name: refusalsTexts.run,
      cell: ({ branch, by, ciUrl, commit, kind, project, stack, updateId }) => (
        <span className={styles['run']}>
          {updateId === null ? (
            <span>{refusalsTexts.runBy(kind === null ? refusalsTexts.run : viewKind({ kind }), by)}</span>
          ) : (
            <Link
              to="/$organization/$project/$stack/previews/$updateId"
              params={{ organization, project, stack, updateId }}
            >
              {refusalsTexts.runBy(kind === null ? refusalsTexts.update : viewKind({ kind }), by)}
            </Link>
          )}
          {branch === null ? null : <code>{branch}</code>}
          {commit === null ? null : <code title={commit}>{shortCommit(commit)}</code>}
          {ciUrl === null ? null : <ExternalLink href={ciUrl}>{refusalsTexts.ciRun}</ExternalLink>}
        </span>
      ),
    },
    {
      name: refusalsTexts.waited,
      align: 'right',
      cell: ({ waitedMs }) => (waitedMs < 1000 ? '–' : duration(waitedMs / 1000)),
    },
    { name: refusalsTexts.when, align: 'right', cell: ({ at }) => <Time at={at} /> },
  ];
}

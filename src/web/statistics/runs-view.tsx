import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { ChartNoAxesColumn } from 'lucide-react';
import { type ProjectOrder, parseCiSearch, projectOrders } from '../platform/app/ci-search.ts';
import { Problem, type ReadQuery, useProblem } from '../platform/app/problem-pages.tsx';
import type { CiStatistics } from '../platform/app/procedure-types.ts';
import { DayChart } from '../platform/ui/day-chart.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { SelectField } from '../platform/ui/field.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './runs-view.module.css';
import { meanMs, orderProjects, rate, sumStatistics } from './summaries.ts';
import { runsTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/ci');

type Project = CiStatistics['projects'][number];

export function RunsView({
  days,
  statistics,
  organization,
}: {
  readonly organization: string;
  readonly days: number;
  readonly statistics: ReadQuery & { readonly data: CiStatistics | undefined };
}) {
  const problem = useProblem(statistics);
  if (problem) return <Problem {...problem} />;
  const { data } = statistics;
  const sum = data && sumStatistics(data.days);
  if (sum && sum.runs + sum.previews + sum.refused === 0) return <NoRuns days={days} />;
  return (
    <>
      <StatTiles
        statistics={[
          {
            name: runsTexts.runs,
            value: sum?.runs.toLocaleString(numberLocale),
            note: sum && runsTexts.previews(sum.previews),
          },
          {
            name: runsTexts.failed,
            value: sum && rate(sum.failed, sum.runs),
            note: sum && runsTexts.failedRuns(sum.failed),
            tone: sum && sum.failed * 10 > sum.runs ? 'failure' : undefined,
          },
          {
            name: runsTexts.timeInQueue,
            value: sum && duration(sum.waitedMs / 1000),
            note: sum && runsTexts.runsWaited(sum.waits),
          },
          { name: runsTexts.refused, value: sum?.refused.toLocaleString(numberLocale), note: runsTexts.refusedNote },
          {
            name: runsTexts.meanDuration,
            value: sum && duration(meanMs(sum) / 1000),
            note: sum && runsTexts.longestOf(duration(sum.longestMs / 1000)),
          },
        ]}
      />
      <div className={styles['charts']}>{data && sum ? <Charts data={data} sum={sum} /> : <ChartSkeletons />}</div>
      <Projects organization={organization} items={data?.projects} />
      {data?.isTrimmed ? <p className={styles['note']}>{runsTexts.trimmed}</p> : null}
    </>
  );
}

function Charts({ data, sum }: { readonly data: CiStatistics; readonly sum: ReturnType<typeof sumStatistics> }) {
  const days = data.days.map(({ day }) => day);
  const of = (read: (day: CiStatistics['days'][number]) => number): number[] => data.days.map(read);
  const number = (value: number): string => value.toLocaleString(numberLocale);
  return (
    <>
      <DayChart
        title={runsTexts.runsByDay}
        total={runsTexts.failedRate(rate(sum.failed, sum.runs))}
        days={days}
        format={number}
        series={[
          { name: runsTexts.failed, tone: 'failure', values: of(({ failed }) => failed) },
          { name: runsTexts.cancelled, tone: 'neutral', values: of(({ cancelled }) => cancelled) },
          {
            name: runsTexts.succeeded,
            tone: 'accent',
            values: of(({ cancelled, failed, runs }) => runs - failed - cancelled),
          },
        ]}
      />
      <DayChart
        title={runsTexts.timeInQueueByDay}
        total={duration(sum.waitedMs / 1000)}
        days={days}
        format={(ms) => duration(ms / 1000)}
        series={[{ name: runsTexts.waitedColumn, tone: 'warning', values: of(({ waitedMs }) => waitedMs) }]}
      />
    </>
  );
}

function ChartSkeletons() {
  return [0, 1].map((at) => (
    <div key={at} aria-busy="true">
      <Skeleton width="100%" height={190} />
    </div>
  ));
}

const orders: Readonly<Record<ProjectOrder, string>> = runsTexts.orders;

function Projects({
  items,
  organization,
}: {
  readonly organization: string;
  readonly items: readonly Project[] | undefined;
}) {
  const { sort = 'slowest' } = route.useSearch();
  const navigate = useNavigate();
  const columns: readonly Column<Project>[] = [
    {
      name: runsTexts.project,
      isTitle: true,
      cell: ({ project }) => (
        <Link to="/$organization" params={{ organization }} search={{ project }}>
          {project}
        </Link>
      ),
    },
    { name: runsTexts.runs, align: 'right', cell: ({ runs }) => runs.toLocaleString(numberLocale) },
    {
      name: runsTexts.failed,
      align: 'right',
      cell: ({ failed, runs }) => (
        <span className={failed * 10 > runs ? styles['bad'] : undefined}>{rate(failed, runs)}</span>
      ),
    },
    { name: runsTexts.meanDuration, align: 'right', cell: (each) => duration(meanMs(each) / 1000) },
    { name: runsTexts.longest, align: 'right', cell: ({ longestMs }) => duration(longestMs / 1000) },
    {
      name: runsTexts.waitedColumn,
      align: 'right',
      cell: ({ waitedMs }) => (waitedMs === 0 ? '–' : duration(waitedMs / 1000)),
    },
    {
      name: runsTexts.refused,
      align: 'right',
      cell: ({ project, refused }) =>
        refused === 0 ? (
          '–'
        ) : (
          <Link to="." search={(before) => ({ ...before, view: 'refusals', project })}>
            {refused.toLocaleString(numberLocale)}
          </Link>
        ),
    },
  ];
  return (
    <Section
      title={runsTexts.projects}
      actions={
        <SelectField
          label={runsTexts.order}
          isLabelUnseen
          value={sort}
          options={projectOrders.map((order) => [order, orders[order]] as const)}
          onChange={({ target }) =>
            void navigate({
              to: '.',
              replace: true,
              search: (before) => parseCiSearch({ ...before, sort: target.value }),
            })
          }
        />
      }
    >
      <Table
        label={runsTexts.projects}
        columns={columns}
        items={items && orderProjects(items, sort)}
        keyOf={({ project }) => project}
        empty={<p className={styles['note']}>{runsTexts.noProjects}</p>}
      />
    </Section>
  );
}

function NoRuns({ days }: { readonly days: number }) {
  return (
    <Empty title={runsTexts.noRuns(days)} icon={<ChartNoAxesColumn size={20} />}>
      <p>{runsTexts.noRunsHint}</p>
    </Empty>
  );
}

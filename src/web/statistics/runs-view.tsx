import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { ChartNoAxesColumn } from 'lucide-react';
import { type ProjectOrder, parseCiSearch, projectOrders } from '../platform/app/ci-search.ts';
import type { CiStatistics } from '../platform/app/contract.ts';
import { Problem, type ReadQuery, useProblem } from '../platform/app/problem-pages.tsx';
import { DayChart } from '../platform/ui/day-chart.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { SelectField } from '../platform/ui/field.tsx';
import { Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './runs-view.module.css';
import { meanMs, orderProjects, rate, sumStatistics } from './summaries.ts';

const route = getRouteApi('/$organization/~/ci');

type Project = CiStatistics['projects'][number];

/** The results of recent runs, and where time was lost. */
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
          { name: 'Runs', value: sum?.runs.toLocaleString(), note: sum && `${sum.previews.toLocaleString()} previews` },
          {
            name: 'Failed',
            value: sum && rate(sum.failed, sum.runs),
            note: sum && `${sum.failed.toLocaleString()} runs`,
            tone: sum && sum.failed * 10 > sum.runs ? 'failure' : undefined,
          },
          {
            name: 'Time in queue',
            value: sum && duration(sum.waitedMs / 1000),
            note: sum && `${sum.waits.toLocaleString()} waited`,
          },
          { name: 'Refused', value: sum?.refused.toLocaleString(), note: 'includes superseded and stopped runs' },
          {
            name: 'Mean duration',
            value: sum && duration(meanMs(sum) / 1000),
            note: sum && `longest ${duration(sum.longestMs / 1000)}`,
          },
        ]}
      />
      <div className={styles['charts']}>{data && sum ? <Charts data={data} sum={sum} /> : <ChartSkeletons />}</div>
      <Projects organization={organization} items={data?.projects} />
      {data?.isTrimmed ? (
        <p className={styles['note']}>Only runs of stacks that you can read are counted, and none of deleted stacks.</p>
      ) : null}
    </>
  );
}

function Charts({ data, sum }: { readonly data: CiStatistics; readonly sum: ReturnType<typeof sumStatistics> }) {
  const days = data.days.map(({ day }) => day);
  const of = (read: (day: CiStatistics['days'][number]) => number): number[] => data.days.map(read);
  const number = (value: number): string => value.toLocaleString();
  return (
    <>
      <DayChart
        title="Runs by day"
        total={`${rate(sum.failed, sum.runs)} failed`}
        days={days}
        format={number}
        series={[
          { name: 'Failed', tone: 'failure', values: of(({ failed }) => failed) },
          { name: 'Cancelled', tone: 'neutral', values: of(({ cancelled }) => cancelled) },
          { name: 'Succeeded', tone: 'accent', values: of(({ cancelled, failed, runs }) => runs - failed - cancelled) },
        ]}
      />
      <DayChart
        title="Time in queue, by day"
        total={duration(sum.waitedMs / 1000)}
        days={days}
        format={(ms) => duration(ms / 1000)}
        series={[{ name: 'Waited', tone: 'warning', values: of(({ waitedMs }) => waitedMs) }]}
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

const orders: Readonly<Record<ProjectOrder, string>> = {
  slowest: 'Slowest first',
  failures: 'Most failures first',
  queue: 'Longest in queue first',
  runs: 'Most runs first',
};

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
      name: 'Project',
      isTitle: true,
      cell: ({ project }) => (
        <Link to="/$organization" params={{ organization }} search={{ project }}>
          {project}
        </Link>
      ),
    },
    { name: 'Runs', align: 'right', cell: ({ runs }) => runs.toLocaleString() },
    {
      name: 'Failed',
      align: 'right',
      cell: ({ failed, runs }) => (
        <span className={failed * 10 > runs ? styles['bad'] : undefined}>{rate(failed, runs)}</span>
      ),
    },
    { name: 'Mean duration', align: 'right', cell: (each) => duration(meanMs(each) / 1000) },
    { name: 'Longest', align: 'right', isMinor: true, cell: ({ longestMs }) => duration(longestMs / 1000) },
    { name: 'Waited', align: 'right', cell: ({ waitedMs }) => (waitedMs === 0 ? '–' : duration(waitedMs / 1000)) },
    {
      name: 'Refused',
      align: 'right',
      cell: ({ project, refused }) =>
        refused === 0 ? (
          '–'
        ) : (
          <Link to="." search={(before) => ({ ...before, view: 'refusals', project })}>
            {refused.toLocaleString()}
          </Link>
        ),
    },
  ];
  return (
    <Section
      title="Projects"
      actions={
        <SelectField
          label="Order"
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
        label="Projects"
        columns={columns}
        items={items && orderProjects(items, sort)}
        keyOf={({ project }) => project}
        empty={<p className={styles['note']}>No project has runs.</p>}
      />
    </Section>
  );
}

function NoRuns({ days }: { readonly days: number }) {
  return (
    <Empty title={`No runs in the last ${days} days`} icon={<ChartNoAxesColumn size={20} />}>
      <p>Updates, refreshes and destroys of all pipelines count here when they end.</p>
    </Empty>
  );
}

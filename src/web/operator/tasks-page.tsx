import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, LoaderCircle } from 'lucide-react';
import { useEffect } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorTasks } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { lateSeconds } from './attention.ts';
import styles from './job-queues-page.module.css';
import { taskTexts } from './texts.tsx';

const refreshMs = 10_000;
/** The server counts up to this number. */
const maxCounted = 10_000;

type Run = OperatorTasks['runs'][number];

export function TasksPage() {
  const query = useQuery(trpc.operator.maintenance.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.tasks);
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const waiting = data?.waiting;
  const audit = data?.audit;
  const late = (seconds: number | null | undefined) =>
    seconds && seconds > lateSeconds ? ('warning' as const) : undefined;
  return (
    <Page title={taskTexts.tasks} lead={taskTexts.lead}>
      <StatTiles
        statistics={[
          { name: taskTexts.statesToIndex, value: waiting && countText(waiting.index) },
          { name: taskTexts.logsToArchive, value: waiting && countText(waiting.archiving) },
          { name: taskTexts.versionsToEncode, value: waiting && countText(waiting.encode) },
          { name: taskTexts.webhooksToDeliver, value: waiting && countText(waiting.deliveries) },
          {
            name: taskTexts.auditNotChained,
            value: audit && ageText(audit.unchainedSeconds),
            note:
              audit &&
              (audit.unsentSeconds === null ? taskTexts.notForwarded : taskTexts.unsent(ageText(audit.unsentSeconds))),
            tone: late(audit?.unchainedSeconds) ?? late(audit?.unsentSeconds),
          },
        ]}
      />
      <Section title={taskTexts.runs}>
        <Table
          label={taskTexts.runs}
          columns={runColumns}
          items={data?.runs.toSorted((one, other) => Number(isFailed(other)) - Number(isFailed(one)))}
          keyOf={({ name }) => name}
          empty={<p>{taskTexts.noRuns}</p>}
        />
      </Section>
      <Section title={taskTexts.migrations} lead={taskTexts.migrationsLead}>
        <Table
          label={taskTexts.migrations}
          columns={migrationColumns}
          items={data?.migrations}
          keyOf={({ name }) => name}
          empty={<p>{taskTexts.noMigrations}</p>}
        />
      </Section>
    </Page>
  );
}

/** Tasks that fail come first. */
function isFailed({ failedAt }: Run): boolean {
  return failedAt !== null;
}

function countText(count: number): string {
  return count >= maxCounted ? `${maxCounted.toLocaleString(numberLocale)}+` : count.toLocaleString(numberLocale);
}

function ageText(seconds: number): string {
  return seconds < 1 ? taskTexts.none : duration(seconds);
}

const runColumns: readonly Column<Run>[] = [
  { name: taskTexts.task, isTitle: true, cell: ({ name }) => name.replaceAll('-', ' ') },
  {
    name: taskTexts.state,
    cell: ({ error, failedAt, isRunning }) =>
      failedAt !== null ? (
        <>
          <Badge tone="failure" icon={<CircleX aria-hidden="true" />}>
            {taskTexts.failed}
          </Badge>{' '}
          <span className={styles['fault']}>{error}</span>
        </>
      ) : isRunning ? (
        <Badge tone="running" icon={<LoaderCircle aria-hidden="true" />}>
          {taskTexts.running}
        </Badge>
      ) : (
        <Badge tone="success" isSoft={false} icon={<CircleCheck aria-hidden="true" />}>
          {taskTexts.done}
        </Badge>
      ),
  },
  {
    name: taskTexts.result,
    align: 'right',
    cell: ({ count }) => (count === null ? '–' : count.toLocaleString(numberLocale)),
  },
  {
    name: taskTexts.duration,
    align: 'right',
    cell: ({ endedAt, isRunning, startedAt }) =>
      isRunning || startedAt === null || endedAt === null || endedAt < startedAt
        ? '–'
        : duration((Date.parse(endedAt) - Date.parse(startedAt)) / 1000),
  },
  {
    name: taskTexts.started,
    align: 'right',
    cell: ({ startedAt }) => (startedAt === null ? '–' : <Time at={startedAt} />),
  },
];

const migrationColumns: readonly Column<OperatorTasks['migrations'][number]>[] = [
  { name: taskTexts.migration, isTitle: true, cell: ({ name }) => <code>{name}</code> },
  { name: taskTexts.applied, align: 'right', cell: ({ at }) => <Time at={at} /> },
];

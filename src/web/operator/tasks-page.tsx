import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, LoaderCircle } from 'lucide-react';
import { useEffect } from 'react';
import type { OperatorTasks } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { lateSeconds } from './attention.ts';
import styles from './queues-page.module.css';

const refreshMs = 10_000;
/** Counts end here. */
const maxCounted = 10_000;

type Run = OperatorTasks['runs'][number];

/** Background tasks and their backlogs. */
export function TasksPage() {
  const query = useQuery(trpc.operator.maintenance.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = 'Tasks - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const waiting = data?.waiting;
  const audit = data?.audit;
  const late = (seconds: number | null | undefined) =>
    seconds && seconds > lateSeconds ? ('warning' as const) : undefined;
  return (
    <Page title="Tasks" lead="Background tasks. Each runs in one process at a time, and never delays an update.">
      <StatTiles
        statistics={[
          { name: 'States to index', value: waiting && countText(waiting.index) },
          { name: 'Logs to archive', value: waiting && countText(waiting.archiving) },
          { name: 'Versions to re-encode', value: waiting && countText(waiting.encode) },
          { name: 'Webhooks to deliver', value: waiting && countText(waiting.deliveries) },
          {
            name: 'Audit log, unencrypted',
            value: audit && ageText(audit.unchainedSeconds),
            note: audit && (audit.unsentSeconds === null ? 'not forwarded' : `unsent ${ageText(audit.unsentSeconds)}`),
            tone: late(audit?.unchainedSeconds) ?? late(audit?.unsentSeconds),
          },
        ]}
      />
      <Section title="Task runs">
        <Table
          label="Task runs"
          columns={runColumns}
          items={data?.runs.toSorted((one, other) => Number(isFailed(other)) - Number(isFailed(one)))}
          keyOf={({ name }) => name}
          empty={<p>No task has run yet.</p>}
        />
      </Section>
      <Section title="Migrations" lead="The newest of the database.">
        <Table
          label="Migrations"
          columns={migrationColumns}
          items={data?.migrations}
          keyOf={({ name }) => name}
          empty={<p>No migrations.</p>}
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
  return count >= maxCounted ? `${maxCounted.toLocaleString()}+` : count.toLocaleString();
}

function ageText(seconds: number): string {
  return seconds < 1 ? 'none' : duration(seconds);
}

const runColumns: readonly Column<Run>[] = [
  { name: 'Task', isTitle: true, cell: ({ name }) => name.replaceAll('-', ' ') },
  {
    name: 'State',
    cell: ({ error, failedAt, isRunning }) =>
      failedAt !== null ? (
        <>
          <Badge tone="failure" icon={<CircleX aria-hidden="true" />}>
            Failed
          </Badge>{' '}
          <span className={styles['fault']}>{error}</span>
        </>
      ) : isRunning ? (
        <Badge tone="running" icon={<LoaderCircle aria-hidden="true" />}>
          Running
        </Badge>
      ) : (
        <Badge tone="success" isSoft={false} icon={<CircleCheck aria-hidden="true" />}>
          Done
        </Badge>
      ),
  },
  { name: 'Result', align: 'right', cell: ({ count }) => (count === null ? '–' : count.toLocaleString()) },
  {
    name: 'Duration',
    align: 'right',
    isMinor: true,
    cell: ({ endedAt, isRunning, startedAt }) =>
      isRunning || startedAt === null || endedAt === null || endedAt < startedAt
        ? '–'
        : duration((Date.parse(endedAt) - Date.parse(startedAt)) / 1000),
  },
  { name: 'Started', align: 'right', cell: ({ startedAt }) => (startedAt === null ? '–' : <Time at={startedAt} />) },
];

const migrationColumns: readonly Column<OperatorTasks['migrations'][number]>[] = [
  { name: 'Migration', isTitle: true, cell: ({ name }) => <code>{name}</code> },
  { name: 'Applied', align: 'right', cell: ({ at }) => <Time at={at} /> },
];

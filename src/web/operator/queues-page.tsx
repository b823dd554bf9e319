import { useMutation, useQuery } from '@tanstack/react-query';
import { CircleX, Hourglass, LoaderCircle, Timer } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { OperatorQueues } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { byteText, msText } from '../platform/ui/byte-text.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './queues-page.module.css';

const refreshMs = 5_000;

type Queue = OperatorQueues['queues'][number];
type Job = Queue['jobs'][number];
/** An action on a failed job. */
interface Asked {
  readonly way: 'retry' | 'discard';
  readonly queue: 'small' | 'large';
  readonly job: Job;
}

/** The queues of the workers, and failed jobs. */
export function QueuesPage() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const query = useQuery(trpc.operator.queues.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = 'Queues - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const lead =
    data === undefined
      ? 'The jobs of the workers.'
      : data.redis === null
        ? 'This server runs its jobs itself: there are no queues in Redis, and the caller of a failed job gets an error.'
        : data.redis.up
          ? `Redis answers in ${msText(data.redis.roundTripMs)} and holds ${byteText(data.redis.memoryBytes)}${data.redis.memoryLimitBytes === 0 ? '' : ` of ${byteText(data.redis.memoryLimitBytes)}`}.`
          : 'Redis does not answer. Large writes are refused until it does; nothing is lost.';
  return (
    <Page title="Queues" lead={lead}>
      {(data?.queues ?? [undefined, undefined]).map((queue, at) => (
        <QueueSection key={queue?.name ?? at} queue={queue} onAsk={setAsked} />
      ))}
      {asked === null ? null : <AskJob asked={asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}

const names: Readonly<Record<string, string>> = { small: 'Small writes', large: 'Large writes' };

function QueueSection({ onAsk, queue }: { readonly queue: Queue | undefined; readonly onAsk: (asked: Asked) => void }) {
  const name = queue?.name ?? '';
  return (
    <Section title={names[name] ?? 'Queue'}>
      <StatTiles
        statistics={[
          { name: 'Waiting', value: queue?.waiting.toLocaleString() },
          { name: 'Oldest', value: queue && (queue.waiting === 0 ? '–' : duration(queue.oldestWaitingMs / 1000)) },
          { name: 'Running', value: queue?.active.toLocaleString() },
          {
            name: 'Failed',
            value: queue?.failed.toLocaleString(),
            tone: queue && queue.failed > 0 ? 'failure' : undefined,
          },
          ...(queue?.workers === null
            ? []
            : [
                {
                  name: 'Workers',
                  value: queue?.workers.toLocaleString(),
                  tone: queue?.workers === 0 ? ('failure' as const) : undefined,
                },
              ]),
        ]}
      />
      {queue === undefined || queue.jobs.length === 0 ? null : (
        <Table
          label={`Jobs: ${names[name] ?? name}`}
          columns={columns(queue, onAsk)}
          items={queue.jobs}
          keyOf={({ id }) => id}
          empty={null}
        />
      )}
    </Section>
  );
}

const states = {
  active: { text: 'Running', tone: 'running', Icon: LoaderCircle },
  wait: { text: 'Waiting', tone: 'neutral', Icon: Hourglass },
  prioritized: { text: 'Waiting', tone: 'neutral', Icon: Hourglass },
  delayed: { text: 'Waiting for the next attempt', tone: 'warning', Icon: Timer },
  failed: { text: 'Failed', tone: 'failure', Icon: CircleX },
} as const;

function columns(queue: Queue, onAsk: (asked: Asked) => void): readonly Column<Job>[] {
  const size = queue.name === 'large' ? 'large' : 'small';
  return [
    {
      name: 'Job',
      isTitle: true,
      cell: ({ id, name }) => (
        <span title={id}>
          {name.replaceAll('-', ' ')}
          <code className={styles['id']}>{id.slice(0, 8)}</code>
        </span>
      ),
    },
    {
      name: 'State',
      cell: ({ state }) => {
        const { Icon, text, tone } = states[state];
        return (
          <Badge tone={tone} icon={<Icon aria-hidden="true" />}>
            {text}
          </Badge>
        );
      },
    },
    { name: 'Added', cell: ({ addedAt }) => (addedAt === null ? '–' : <Time at={addedAt} />) },
    { name: 'Attempts', align: 'right', cell: ({ attempts }) => attempts.toLocaleString() },
    { name: 'Error', cell: ({ fault }) => (fault === null ? '–' : <span className={styles['fault']}>{fault}</span>) },
    {
      name: 'Actions',
      isActions: true,
      cell: (job) =>
        job.state !== 'failed' ? null : (
          <span className={styles['actions']}>
            {job.canRetry ? (
              <Button
                size="small"
                aria-label={`Retry ${job.name} ${job.id.slice(0, 8)}`}
                onClick={() => onAsk({ way: 'retry', queue: size, job })}
              >
                Retry
              </Button>
            ) : null}
            <Button
              size="small"
              aria-label={`Discard ${job.name} ${job.id.slice(0, 8)}`}
              onClick={() => onAsk({ way: 'discard', queue: size, job })}
            >
              Discard
            </Button>
          </span>
        ),
    },
  ];
}

function AskJob({ asked: { job, queue, way }, onClose }: { readonly asked: Asked; readonly onClose: () => void }) {
  const onSuccess = async (): Promise<void> => {
    await queryClient.invalidateQueries({ queryKey: trpc.operator.queues.pathKey() });
    onClose();
  };
  const retry = useMutation(trpc.operator.retryJob.mutationOptions({ onSuccess }));
  const discard = useMutation(trpc.operator.discardJob.mutationOptions({ onSuccess }));
  const mutation = way === 'retry' ? retry : discard;
  return (
    <ActionDialog
      title={way === 'retry' ? 'Run this job again?' : 'Discard this job?'}
      description={
        way === 'retry'
          ? 'The job is queued again. Running it twice does no harm.'
          : 'Only this record is removed. The caller already got an error; cleanup jobs are scheduled again automatically.'
      }
      action={way === 'retry' ? 'Run it again' : 'Discard it'}
      isDanger={way === 'discard'}
      isPending={mutation.isPending}
      error={mutation.error}
      onClose={onClose}
      onSubmit={() => mutation.mutate({ queue, id: job.id })}
    />
  );
}

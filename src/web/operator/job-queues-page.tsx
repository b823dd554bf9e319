import { useMutation, useQuery } from '@tanstack/react-query';
import { CircleX, Hourglass, LoaderCircle, Timer } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorQueues } from '../platform/app/procedure-types.ts';
import { every, queryClient, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { byteText, msText } from '../platform/ui/byte-text.ts';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './job-queues-page.module.css';
import { queueTexts } from './texts.tsx';

const refreshMs = 5_000;

type Queue = OperatorQueues['queues'][number];
type Job = Queue['jobs'][number];
interface Asked {
  readonly way: 'retry' | 'discard';
  readonly queue: 'small' | 'large';
  readonly job: Job;
}

/** The queues of the workers, and failed jobs. */
export function JobQueuesPage() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const query = useQuery(trpc.operator.queues.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.queues);
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const lead =
    data === undefined
      ? queueTexts.lead
      : data.redis === null
        ? queueTexts.inServer
        : data.redis.up
          ? queueTexts.inRedis({
              time: msText(data.redis.roundTripMs),
              used: byteText(data.redis.memoryBytes),
              limit: data.redis.memoryLimitBytes === 0 ? null : byteText(data.redis.memoryLimitBytes),
            })
          : queueTexts.redisDown;
  return (
    <Page title={queueTexts.queues} lead={lead}>
      {(data?.queues ?? [undefined, undefined]).map((queue, at) => (
        <QueueSection key={queue?.name ?? at} queue={queue} onAsk={setAsked} />
      ))}
      {asked === null ? null : <AskJob asked={asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}

const names: Readonly<Record<string, string>> = { small: queueTexts.smallWrites, large: queueTexts.largeWrites };

function QueueSection({ onAsk, queue }: { readonly queue: Queue | undefined; readonly onAsk: (asked: Asked) => void }) {
  const name = queue?.name ?? '';
  return (
    <Section title={names[name] ?? queueTexts.queue}>
      <StatTiles
        statistics={[
          { name: queueTexts.waiting, value: queue?.waiting.toLocaleString(numberLocale) },
          {
            name: queueTexts.oldest,
            value: queue && (queue.waiting === 0 ? '–' : duration(queue.oldestWaitingMs / 1000)),
          },
          { name: queueTexts.running, value: queue?.active.toLocaleString(numberLocale) },
          {
            name: queueTexts.failed,
            value: queue?.failed.toLocaleString(numberLocale),
            tone: queue && queue.failed > 0 ? 'failure' : undefined,
          },
          ...(queue?.workers === null
            ? []
            : [
                {
                  name: queueTexts.workers,
                  value: queue?.workers.toLocaleString(numberLocale),
                  tone: queue?.workers === 0 ? ('failure' as const) : undefined,
                },
              ]),
        ]}
      />
      {queue === undefined || queue.jobs.length === 0 ? null : (
        <Table
          label={queueTexts.jobsOf(names[name] ?? name)}
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
  active: { text: queueTexts.running, tone: 'running', Icon: LoaderCircle },
  wait: { text: queueTexts.waiting, tone: 'neutral', Icon: Hourglass },
  prioritized: { text: queueTexts.waiting, tone: 'neutral', Icon: Hourglass },
  delayed: { text: queueTexts.waitingForNext, tone: 'warning', Icon: Timer },
  failed: { text: queueTexts.failed, tone: 'failure', Icon: CircleX },
} as const;

function nameOf({ id, name }: Job): string {
  return `${name.replaceAll('-', ' ')} ${id.slice(0, 8)}`;
}

function columns(queue: Queue, onAsk: (asked: Asked) => void): readonly Column<Job>[] {
  const size = queue.name === 'large' ? 'large' : 'small';
  return [
    {
      name: queueTexts.job,
      isTitle: true,
      cell: ({ id, name }) => (
        <span title={id}>
          {name.replaceAll('-', ' ')}
          <code className={styles['id']}>{id.slice(0, 8)}</code>
        </span>
      ),
    },
    {
      name: queueTexts.state,
      cell: ({ state }) => {
        // A newer server may have other states.
        const { Icon, text, tone } = states[state] ?? { ...states.wait, text: state };
        return (
          <Badge tone={tone} icon={<Icon aria-hidden="true" />}>
            {text}
          </Badge>
        );
      },
    },
    { name: queueTexts.added, cell: ({ addedAt }) => (addedAt === null ? '–' : <Time at={addedAt} />) },
    { name: queueTexts.attempts, align: 'right', cell: ({ attempts }) => attempts.toLocaleString(numberLocale) },
    {
      name: queueTexts.error,
      cell: ({ fault }) => (fault === null ? '–' : <span className={styles['fault']}>{fault}</span>),
    },
    {
      name: queueTexts.actions,
      isActions: true,
      cell: (job) =>
        job.state !== 'failed' ? null : (
          <span className={styles['actions']}>
            {job.canRetry ? (
              <Button
                size="small"
                aria-label={queueTexts.retryJob(nameOf(job))}
                onClick={() => onAsk({ way: 'retry', queue: size, job })}
              >
                {queueTexts.retry}
              </Button>
            ) : null}
            <Button
              size="small"
              aria-label={queueTexts.discardJob(nameOf(job))}
              onClick={() => onAsk({ way: 'discard', queue: size, job })}
            >
              {queueTexts.discard}
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
      title={way === 'retry' ? queueTexts.retryTitle(nameOf(job)) : queueTexts.discardTitle(nameOf(job))}
      description={way === 'retry' ? queueTexts.retryLead : queueTexts.discardLead}
      action={way === 'retry' ? queueTexts.runAgain : queueTexts.discardIt}
      isDanger={way === 'discard'}
      isPending={mutation.isPending}
      error={mutation.error}
      onClose={onClose}
      onSubmit={() => mutation.mutate({ queue, id: job.id })}
    />
  );
}

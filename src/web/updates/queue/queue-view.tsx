import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CirclePlay } from 'lucide-react';
import { useRef, useState } from 'react';
import { useLive } from '../../platform/app/live.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { QueueItem } from '../../platform/app/procedure-types.ts';
import { loadedPages } from '../../platform/app/refreshes.ts';
import { every, queryClient, trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { Since } from '../../platform/ui/time.tsx';
import { shortCommit } from '../update-status.ts';
import styles from './queue-view.module.css';
import { describeRun, RunActions, StopDialog, type Way } from './run-actions.tsx';
import { queueTexts } from './texts.tsx';

const pageSize = 200;
/** Intervals with and without the stream. */
const refreshMs = { live: 20_000, alone: 4_000 } as const;
/** Many runs may start and end at once, so the list is refreshed at this interval, for each of its pages. */
const settleMs = 400;

const causes = {
  lock: { text: queueTexts.waitsForStack, tone: 'neutral' },
  limit: { text: queueTexts.waitsForLimit, tone: 'warning' },
  freeze: { text: queueTexts.frozen, tone: 'warning' },
  turn: { text: queueTexts.aboutToStart, tone: 'running' },
} as const;

type Asked = (run: QueueItem, way: Way) => void;

/** Updates automatically. */
export function QueueView({ organization }: { readonly organization: string }) {
  // The dialog stays when the run continues or ends.
  const [asked, setAsked] = useState<{ readonly run: QueueItem; readonly way: Way } | null>(null);
  return (
    <>
      <Queues organization={organization} onAsk={(run, way) => setAsked({ run, way })} />
      {asked === null ? null : <StopDialog {...asked} onClose={() => setAsked(null)} />}
    </>
  );
}

function Queues({ onAsk, organization }: { readonly organization: string; readonly onAsk: Asked }) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isLive = useLive(`organization:${organization}`, () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void queryClient.invalidateQueries({ queryKey: trpc.queue.list.pathKey() });
    }, settleMs * loadedPages(query.data));
  });
  const query = useInfiniteQuery(
    trpc.queue.list.infiniteQueryOptions(
      { organization, limit: pageSize },
      {
        getNextPageParam: ({ next }) => next,
        placeholderData: keepPreviousData,
        refetchInterval: every(isLive ? refreshMs.live : refreshMs.alone),
      },
    ),
  );
  const items = query.data?.pages.flatMap((page) => page.items);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (items === undefined) return <QueueSkeleton />;
  if (items.length === 0) return <NobodyWaits />;
  const queues = Map.groupBy(items, ({ project, stack }) => `${project}/${stack}`);
  const waiting = items.filter(({ state }) => state === 'waiting').length;
  return (
    <div className={styles['queues']}>
      <p className={styles['sum']} role="status">
        {queueTexts.sum(items.length - waiting, waiting, query.hasNextPage)}
      </p>
      <ul className={styles['stacks']}>
        {[...queues.values()].map((runs) => (
          <StackQueue key={`${runs[0]?.project}/${runs[0]?.stack}`} runs={runs} onAsk={onAsk} />
        ))}
      </ul>
      {query.hasNextPage ? (
        <Button onClick={() => void query.fetchNextPage()} disabled={query.isFetchingNextPage}>
          {queueTexts.showMore}
        </Button>
      ) : null}
    </div>
  );
}

function StackQueue({ onAsk, runs }: { readonly runs: readonly QueueItem[]; readonly onAsk: Asked }) {
  const [first] = runs;
  if (first === undefined) return null;
  const { organization, project, stack } = first;
  const waiting = runs.filter(({ state }) => state === 'waiting').length;
  return (
    <li className={styles['stack']}>
      <h2 className={styles['name']}>
        <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
          {project}/{stack}
        </Link>
        {waiting === 0 ? null : <span className={styles['waiting']}>{queueTexts.waiting(waiting)}</span>}
      </h2>
      <ol className={styles['runs']} aria-label={queueTexts.queueOf(project, stack)}>
        {runs.map((run) => (
          <Run key={run.updateId ?? run.placeId} run={run} onAsk={(way) => onAsk(run, way)} />
        ))}
      </ol>
    </li>
  );
}

function Run({ onAsk, run }: { readonly run: QueueItem; readonly onAsk: (way: Way) => void }) {
  const { organization, project, stack, updateId } = run;
  const what = describeRun(run);
  return (
    <li className={`${styles['run']} ${updateId === null ? '' : styles['holder']}`}>
      <span className={styles['place']}>
        {updateId === null ? (
          run.position
        ) : (
          <>
            <CirclePlay size={16} aria-hidden="true" />
            <span className="unseen">{queueTexts.runs}</span>
          </>
        )}
      </span>
      <span className={styles['what']}>
        {updateId === null ? (
          what
        ) : (
          <Link
            to="/$organization/$project/$stack/previews/$updateId"
            params={{ organization, project, stack, updateId }}
          >
            {what}
          </Link>
        )}
      </span>
      <span className={styles['from']}>
        {run.branch === null ? null : <code>{run.branch}</code>}
        {run.commit === null ? null : <code title={run.commit}>{shortCommit(run.commit)}</code>}
        {run.ciUrl === null ? null : <ExternalLink href={run.ciUrl}>{queueTexts.ciRun}</ExternalLink>}
      </span>
      <span className={styles['why']}>
        {run.cause === null || run.cause === 'lock' ? null : (
          // A newer server may have other causes.
          <Badge tone={causes[run.cause]?.tone ?? 'neutral'} title={run.why}>
            {causes[run.cause]?.text ?? run.cause}
          </Badge>
        )}
        <span className={styles['since']}>{queueTexts.since(updateId === null, <Since at={run.since} />)}</span>
      </span>
      <span className={styles['actions']}>{run.mayStop ? <RunActions run={run} onAsk={onAsk} /> : null}</span>
    </li>
  );
}

function NobodyWaits() {
  return (
    <Empty title={queueTexts.noStackIsLocked} icon={<CirclePlay size={20} />}>
      <p>{queueTexts.noStackIsLockedHint}</p>
      <Code>pulumi stack tag set lock-wait 30m</Code>
      <p>{queueTexts.order}</p>
    </Empty>
  );
}

function QueueSkeleton() {
  return (
    <div className={styles['queues']} aria-busy="true">
      <ul className={styles['stacks']}>
        {[180, 220, 160].map((width) => (
          <li key={width} className={styles['stack']}>
            <div className={styles['name']}>
              <Skeleton width={width} height={14} />
            </div>
            <div className={styles['run']}>
              <Skeleton width={16} />
              <Skeleton width={width} />
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

import { useEffect, useReducer, useRef, useState } from 'react';
import { repeatAfter } from '../platform/app/api-error.ts';
import { useLive } from '../platform/app/live.ts';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { EventFeed } from './event-feed.ts';
import { isActive } from './update-status.ts';
import { livePollMs, pollMs } from './use-update.ts';

const pageSize = 200;

/** `revision` changes when the tree does. */
export interface LiveProgress {
  readonly feed: EventFeed;
  readonly revision: number;
  readonly error: unknown;
  readonly retry: () => void;
}

/** Whether all events are read; for a running update, all events that existed at the start. */
export function hasRead({ feed }: LiveProgress, update: Pick<UpdateDetails, 'status'>): boolean {
  return feed.isOver || (feed.isCaughtUp && isActive(update));
}

/** Reading continues while the update runs. */
export function useProgress(stack: StackRef, update: UpdateDetails): LiveProgress {
  const { organization, project, stack: name } = stack;
  const { updateId } = update;
  const isRunning = useRef(isActive(update));
  isRunning.current = isActive(update);
  const wake = useRef<() => void>(() => {});
  const isLive = useRef(false);
  isLive.current = useLive(isActive(update) ? `update:${updateId}` : null, () => wake.current());
  // A hidden tab waits longer.
  useEffect(() => {
    const onShown = (): void => {
      if (document.visibilityState === 'visible') wake.current();
    };
    document.addEventListener('visibilitychange', onShown);
    return () => document.removeEventListener('visibilitychange', onShown);
  }, []);
  // Its last events are read as soon as the end is known.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the status is what wakes the reader.
  useEffect(() => wake.current(), [update.status]);
  const [attempt, retry] = useReducer((count: number) => count + 1, 0);
  const [state, setState] = useState<{ feed: EventFeed; revision: number; error: unknown }>(() => ({
    ...{
      feed: createFeed({ organization, project, stack: name }, updateId, { isRunning, isLive, wake }),
      revision: 0,
      error: null,
    },
  }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a retry after an error starts over.
  useEffect(() => {
    const stop = new AbortController();
    let frame = 0;
    const show = (error: unknown = null): void => {
      cancelAnimationFrame(frame);
      // A log of 100,000 events has hundreds of pages, and rendering after each would take longer than reading it.
      frame = requestAnimationFrame(() => setState({ feed, revision: feed.revision, error }));
    };
    const onState = (error: unknown): void => {
      if (!stop.signal.aborted) show(error);
    };
    const feed = createFeed({ organization, project, stack: name }, updateId, { isRunning, isLive, wake }, onState);
    show();
    feed.run(show, stop.signal).catch(onState);
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
    };
  }, [organization, project, name, updateId, attempt]);
  return { ...state, retry };
}

interface FeedSignals {
  readonly isRunning: { readonly current: boolean };
  readonly isLive: { readonly current: boolean };
  /** Ends the wait; set while the feed waits. */
  readonly wake: { current: () => void };
}

/** `onState` gets the reason why a page cannot be read at the moment, and null when it can be read again. */
function createFeed(
  stack: StackRef,
  updateId: string,
  { isLive, isRunning, wake }: FeedSignals,
  onState: (error: unknown) => void = () => {},
): EventFeed {
  let isDue = false;
  wake.current = () => {
    isDue = true;
  };
  return new EventFeed({
    fetchPage: async (cursor, signal) => {
      const input = { ...stack, updateId, limit: pageSize, ...(cursor === null ? {} : { cursor }) };
      const options = trpc.updates.events.queryOptions(input, { staleTime: 0, gcTime: 0 });
      for (let hasFailed = false; ; hasFailed = true) {
        try {
          const page = await queryClient.fetchQuery({ ...options, meta: { signal } });
          if (hasFailed) onState(null);
          return page;
        } catch (error) {
          const againMs = repeatAfter(error);
          if (againMs === false || signal.aborted) throw error;
          onState(error);
          await delay(againMs, signal);
        }
      }
    },
    isRunning: () => isRunning.current,
    wait: (signal) =>
      new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          isDue = false;
          wake.current = () => {
            isDue = true;
          };
          resolve();
        };
        const isHidden = document.visibilityState === 'hidden';
        const timer = setTimeout(end, isDue ? 0 : isLive.current || isHidden ? livePollMs : pollMs);
        signal.addEventListener('abort', end);
        wake.current = end;
      }),
  });
}

/** Resolves early when the signal is aborted. */
function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

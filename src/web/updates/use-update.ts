import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { isGone } from '../platform/app/api-error.ts';
import { useLive } from '../platform/app/live.ts';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { isActive } from './update-status.ts';

/** While an update runs, without and with a stream of notifications. */
export const pollMs = 2_000;
export const livePollMs = 15_000;

export type UpdateChoice = { readonly version: number } | { readonly updateId: string };

/** An update, kept up to date while it runs. */
export function useUpdate(stack: StackRef, choice: UpdateChoice) {
  const isLive = useRef(false);
  const query = useQuery(
    trpc.updates.get.queryOptions(
      { ...stack, ...choice },
      {
        refetchInterval: ({ state }) => {
          const runs = state.data !== undefined && isActive(state.data);
          return every(runs ? (isLive.current ? livePollMs : pollMs) : null)({ state });
        },
      },
    ),
  );
  const { data, error, refetch } = query;
  isLive.current = useLive(
    data !== undefined && !isGone(error) && isActive(data) ? `update:${data.updateId}` : null,
    ({ kind }) => {
      if (kind !== 'events.appended') void refetch();
    },
  );
  return query;
}

/** The time in seconds, which advances while `isTicking`. */
export function useNowSeconds(isTicking: boolean): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!isTicking) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [isTicking]);
  return now;
}

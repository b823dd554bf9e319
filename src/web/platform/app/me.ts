import { useQuery } from '@tanstack/react-query';
import type { Me } from './procedure-types.ts';
import { every, trpc } from './trpc.ts';

const pollMs = 60_000;

/** The query for the current user, for callers that show why it has failed. */
export function useMeQuery(ms = pollMs) {
  return useQuery(trpc.me.get.queryOptions(undefined, { staleTime: pollMs, refetchInterval: every(ms) }));
}

/** The current user; undefined until it is known. */
export function useMe(): Me | undefined {
  return useMeQuery().data;
}

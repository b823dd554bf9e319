import { useQuery } from '@tanstack/react-query';
import type { Me } from './procedure-types.ts';
import { every, trpc } from './trpc.ts';

const pollMs = 60_000;

/** For callers that show why the query has failed. */
export function useMeQuery(ms = pollMs) {
  return useQuery(trpc.me.get.queryOptions(undefined, { staleTime: pollMs, refetchInterval: every(ms) }));
}

/** The current user; undefined until it is known. */
export function useMe(): Me | undefined {
  return useMeQuery().data;
}

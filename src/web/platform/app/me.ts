import { useQuery } from '@tanstack/react-query';
import type { Me } from './contract.ts';
import { trpc } from './trpc.ts';

/** The question who is signed in, for those who show why there is no answer. */
export function useMeQuery() {
  return useQuery(trpc.me.get.queryOptions(undefined, { staleTime: 60_000 }));
}

/** Who is signed in; undefined until that is known. */
export function useMe(): Me | undefined {
  return useMeQuery().data;
}

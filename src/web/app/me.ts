import { useQuery } from '@tanstack/react-query';
import type { Me } from './contract.ts';
import { trpc } from './trpc.ts';

/** Who is signed in; undefined until that is known. */
export function useMe(): Me | undefined {
  return useQuery(trpc.me.get.queryOptions(undefined, { staleTime: 60_000 })).data;
}

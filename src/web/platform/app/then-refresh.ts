import type { QueryKey } from '@tanstack/react-query';
import { isLong } from './refreshes.ts';
import { queryClient } from './trpc.ts';

/** Options of a mutation that reads all shown data again, and then calls `onDone`. */
export function thenRefresh(onDone: () => void) {
  return {
    onSuccess: async () => {
      await refresh();
      onDone();
    },
  };
}

/** Reads shown data again. Nobody waits for long lists. */
export async function refresh(queryKey: QueryKey = []): Promise<void> {
  void queryClient.invalidateQueries({ queryKey, predicate: isLong });
  await queryClient.invalidateQueries({ queryKey, predicate: (query) => !isLong(query) });
}

import type { QueryKey } from '@tanstack/react-query';
import { isLong } from './refreshes.ts';
import { queryClient } from './trpc.ts';

/** Nobody waits longer for shown data, such as a large state: a dialog stays open meanwhile. */
const patienceMs = 5_000;

/**
 * Options of a mutation that reads all shown data again, and then calls `onDone`, also once the user has left the page. What
 * navigates is an option of `mutate`, which is left out then.
 */
export function thenRefresh(onDone?: () => void) {
  return {
    onSuccess: async () => {
      await refresh();
      onDone?.();
    },
  };
}

/** Reads shown data again. Nobody waits for long lists. */
export async function refresh(queryKey: QueryKey = []): Promise<void> {
  void queryClient.invalidateQueries({ queryKey, predicate: isLong });
  const read = queryClient.invalidateQueries({ queryKey, predicate: (query) => !isLong(query) });
  await Promise.race([read, new Promise((resolve) => setTimeout(resolve, patienceMs))]);
}

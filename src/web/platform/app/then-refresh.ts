import type { QueryKey } from '@tanstack/react-query';
import { isLong } from './refreshes.ts';
import { queryClient } from './trpc.ts';

/** The longest wait for shown data, such as a large state: a dialog stays open meanwhile. */
const patienceMs = 5_000;

/**
 * Reloads all shown data, and then calls `onDone`, even if the user has left the page. Navigation belongs in an option of `mutate`, which
 * is not called then.
 */
export function thenRefresh(onDone?: () => void) {
  return {
    onSuccess: async () => {
      await refresh();
      onDone?.();
    },
  };
}

/** Reloads shown data. Does not wait for long lists. */
export async function refresh(queryKey: QueryKey = []): Promise<void> {
  void queryClient.invalidateQueries({ queryKey, predicate: isLong });
  const read = queryClient.invalidateQueries({ queryKey, predicate: (query) => !isLong(query) });
  await Promise.race([read, new Promise((resolve) => setTimeout(resolve, patienceMs))]);
}

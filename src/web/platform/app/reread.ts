import type { QueryClient, QueryKey } from '@tanstack/react-query';

/** Whether what is being read must be read once more. */
const running = new Map<string, boolean>();

/**
 * Reads shown data again. A read in progress goes on, and is followed by one more: during many changes, each answer comes to the
 * page, and the server never does work for an answer that nobody takes.
 */
export async function reread(client: QueryClient, queryKey: QueryKey): Promise<void> {
  const name = JSON.stringify(queryKey);
  const isReading = running.has(name);
  running.set(name, isReading || client.isFetching({ queryKey }) > 0);
  if (isReading) return;
  for (let again = true; again; ) {
    await client.invalidateQueries({ queryKey }, { cancelRefetch: false });
    again = running.get(name) === true;
    running.set(name, false);
  }
  running.delete(name);
}

import type { QueryClient, QueryFilters, QueryKey } from '@tanstack/react-query';
import { isLong, loadedPages } from './refreshes.ts';

/** For each running read: whether it must be repeated. */
const running = new Map<string, boolean>();

/** Long lists that will be reloaded later. */
const due = new Set<string>();
/** The interval per page of a list. */
const msPerPage = 500;

/**
 * A running read continues, and is followed by one more: during many changes, each answer reaches the page, and the server never works for
 * an answer that nobody takes. A long list is reloaded later, once for all changes until then: it needs hundreds of requests, mostly for
 * rows that are out of view.
 */
export async function reread(client: QueryClient, queryKey: QueryKey): Promise<void> {
  for (const { queryHash, queryKey: key, state } of client.getQueryCache().findAll({ queryKey, predicate: isLong })) {
    if (due.has(queryHash)) continue;
    due.add(queryHash);
    setTimeout(() => {
      due.delete(queryHash);
      void readAgain(client, { queryKey: key, exact: true });
    }, msPerPage * loadedPages(state.data));
  }
  await readAgain(client, { queryKey, predicate: (query) => !isLong(query) });
}

async function readAgain(client: QueryClient, filters: QueryFilters & { readonly queryKey: QueryKey }): Promise<void> {
  const name = JSON.stringify([filters.queryKey, filters.exact]);
  const isReading = running.has(name);
  running.set(name, isReading || client.isFetching(filters) > 0);
  if (isReading) return;
  for (let again = true; again; ) {
    await client.invalidateQueries(filters, { cancelRefetch: false });
    again = running.get(name) === true;
    running.set(name, false);
  }
  running.delete(name);
}

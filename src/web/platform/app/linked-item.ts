import { useEffect } from 'react';
import { fetchMore, type NextPageQuery } from '../ui/paged-list.ts';

interface ListQuery extends NextPageQuery {
  readonly data: unknown;
}

/** Loads lists until one has the item that a link leads to. Returns whether they are loaded to their ends without it. */
export function useIsMissing(isFound: boolean, ...lists: readonly ListQuery[]): boolean {
  useEffect(() => {
    if (!isFound) for (const list of lists) if (list.data !== undefined) fetchMore(list);
  });
  return !isFound && lists.every(({ data, hasNextPage }) => data !== undefined && !hasNextPage);
}

import { useEffect, useRef } from 'react';
import { fetchMore, type NextPageQuery } from '../ui/paged-list.ts';
import { isGone } from './api-error.ts';

interface ListQuery extends NextPageQuery {
  readonly data: unknown;
}

/** Whether lists, as far as they are loaded, have never had the item that a link leads to: one that users see disappear is not missing. */
export function useIsUnseen(id: string | undefined, isFound: boolean, ...lists: readonly ListQuery[]): boolean {
  const seen = useRef<string>(undefined);
  if (isFound) seen.current = id;
  return id !== undefined && seen.current !== id && lists.every(({ data }) => data !== undefined);
}

/** Loads lists until one has the unseen item, if it exists: `item` has been read by its name alone. Returns whether it does not exist. */
export function useIsMissing(
  isUnseen: boolean,
  item: { readonly data: unknown; readonly error: unknown },
  ...lists: readonly ListQuery[]
): boolean {
  useEffect(() => {
    if (isUnseen && item.data !== undefined) for (const list of lists) fetchMore(list);
  });
  return isUnseen && isGone(item.error);
}

import { useEffect, useRef } from 'react';
import { fetchMore, type NextPageQuery } from '../ui/paged-list.ts';
import { isGone } from './api-error.ts';

interface ListQuery extends NextPageQuery {
  readonly data: unknown;
}

/** An item that users see disappear from the loaded part of the lists is not missing. */
export function useIsUnseen(id: string | undefined, isFound: boolean, ...lists: readonly ListQuery[]): boolean {
  const seen = useRef<string>(undefined);
  if (isFound) seen.current = id;
  return id !== undefined && seen.current !== id && lists.every(({ data }) => data !== undefined);
}

/** Loads lists until one contains the unseen item, if it exists: `item` was read by its name alone. */
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

export interface NextPageQuery {
  readonly hasNextPage: boolean;
  readonly isError: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => Promise<unknown>;
}

interface PagedQuery<Item> extends NextPageQuery {
  readonly data: { readonly pages: readonly { readonly items: readonly Item[] }[] } | undefined;
  readonly isPlaceholderData: boolean;
}

export function pagedList<Item>(query: PagedQuery<Item>) {
  return {
    items: query.data?.pages.flatMap(({ items }) => items),
    hasMore: query.hasNextPage,
    isBusy: query.isFetchingNextPage || query.isPlaceholderData,
    onMore: () => void query.fetchNextPage(),
  };
}

/** Not while a page is being read, nor after reading has failed. */
export function fetchMore(query: NextPageQuery): void {
  if (query.hasNextPage && !query.isFetchingNextPage && !query.isError) void query.fetchNextPage();
}

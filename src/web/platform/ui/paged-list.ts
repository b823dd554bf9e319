interface PagedQuery<Item> {
  readonly data: { readonly pages: readonly { readonly items: readonly Item[] }[] } | undefined;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => Promise<unknown>;
}

/** What a table shows of a list that is read page by page. */
export function pagedList<Item>(query: PagedQuery<Item>) {
  return {
    items: query.data?.pages.flatMap(({ items }) => items),
    hasMore: query.hasNextPage,
    isBusy: query.isFetchingNextPage,
    onMore: () => void query.fetchNextPage(),
  };
}

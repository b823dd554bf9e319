/** A list with more pages is not reloaded on each return to the page, because each of its pages waits for the previous one. */
const maxRefreshedPages = 5;

/** Returns 1 for data that is no list. */
export function loadedPages(data: unknown): number {
  const pages = (data as { readonly pages?: unknown } | null | undefined)?.pages;
  return Array.isArray(pages) ? Math.max(1, pages.length) : 1;
}

export function isLong({ state }: { readonly state: { readonly data: unknown } }): boolean {
  return loadedPages(state.data) > maxRefreshedPages;
}

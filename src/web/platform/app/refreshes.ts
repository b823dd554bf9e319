/** A list of more pages is not read again on each return to the page: each of its pages waits for the one before it. */
const maxRefreshedPages = 5;

/** The pages of a list that are loaded; 1 for other data. */
export function loadedPages(data: unknown): number {
  const pages = (data as { readonly pages?: unknown } | null | undefined)?.pages;
  return Array.isArray(pages) ? Math.max(1, pages.length) : 1;
}

export function isLong({ state }: { readonly state: { readonly data: unknown } }): boolean {
  return loadedPages(state.data) > maxRefreshedPages;
}

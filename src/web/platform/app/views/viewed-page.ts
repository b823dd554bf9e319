import type { SavedView, ViewedPage } from '../procedure-types.ts';

/** `search` has the known parameters of the page's URL. */
export function viewOf(page: SavedView['page'], search: object): ViewedPage {
  const given = Object.entries(search).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, String(value)]],
  );
  return { page, search: Object.fromEntries(given) } as ViewedPage;
}

export function isSameView(one: Pick<SavedView, 'page' | 'search'>, other: ViewedPage): boolean {
  const text = (search: object): string => JSON.stringify(Object.entries(search).sort());
  return one.page === other.page && text(one.search) === text(other.search);
}

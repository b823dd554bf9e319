import type { ListedUpdate } from './service-answers.ts';

export const pageSize = 100;

/** `total` only if the service reports it. */
export interface ListedPage {
  readonly updates?: readonly (ListedUpdate | null)[];
  readonly total?: number;
}

/** `location` is the service that answered. */
export function incompleteList(location: string, what: string): string {
  return `${location} answers with the same page of ${what} again, so others may be missing`;
}

/**
 * Newest first. A service that repeats an answer would never end: the list then ends, and `onRepeated` is called if more pages may have
 * followed.
 */
export async function* readPages(
  read: (number: number) => Promise<ListedPage>,
  onRepeated: () => void,
): AsyncGenerator<readonly (ListedUpdate | null)[]> {
  const known = new Set<string>();
  let listed = 0;
  for (let number = 1; ; number++) {
    const { total = 0, updates = [] } = await read(number);
    const before = known.size;
    for (const each of updates) if (each !== null) known.add(keyOf(each));
    if (number > 1 && known.size === before) {
      // Some services also ignore the page size, and return all updates.
      if (updates.length === pageSize) onRepeated();
      return;
    }
    listed += updates.length;
    if (updates.length > 0) yield updates;
    // A service may permit only smaller pages.
    if (updates.length < pageSize && (updates.length === 0 || listed >= total)) return;
  }
}

/** Calls `onRepeated` if a token that has led to items comes again. */
export class PageTokens {
  readonly #known = new Set<string>();
  readonly #onRepeated: () => void;

  constructor(onRepeated: () => void) {
    this.#onRepeated = onRepeated;
  }

  /** Returns null after the last page. */
  next(token: unknown, { hasItems }: { readonly hasItems: boolean }): string | null {
    if (typeof token !== 'string' || token === '') return null;
    if (this.#known.has(token)) {
      if (hasItems) this.#onRepeated();
      return null;
    }
    this.#known.add(token);
    return token;
  }
}

function keyOf(update: ListedUpdate): string {
  const { info = update, updateID, version } = update;
  return updateID ?? `${version ?? info.version}@${info.startTime}`;
}

import type { ListedUpdate } from './service-answers.ts';

/** Updates of one call. */
export const pageSize = 100;

/** A page of a list, and how many items the service counts in all, if it does. */
export interface ListedPage {
  readonly updates?: readonly (ListedUpdate | null)[];
  readonly total?: number;
}

/** Says that a list may have more than came. `location` answered. */
export function incompleteList(location: string, what: string): string {
  return `${location} answers with the same page of ${what} again, so others may be missing`;
}

/**
 * The pages of a list, newest first. A service that answers with what it has answered before would never end: `onRepeated` is called
 * instead, if more may have been to come.
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
      // Some services ignore the size as well, and answer with all.
      if (updates.length === pageSize) onRepeated();
      return;
    }
    listed += updates.length;
    if (updates.length > 0) yield updates;
    // A service may permit smaller pages only.
    if (updates.length < pageSize && (updates.length === 0 || listed >= total)) return;
  }
}

/** Follows the tokens of a list to its end. `onRepeated` is called if one comes again that has led to items. */
export class PageTokens {
  readonly #known = new Set<string>();
  readonly #onRepeated: () => void;

  constructor(onRepeated: () => void) {
    this.#onRepeated = onRepeated;
  }

  /** The token of the next page; null if there is none. */
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

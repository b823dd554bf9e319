import { BlobStoreUnavailableError } from './blob-store.ts';

/** The listed store is gone. Others have another order, so continuing there would skip blobs: list again. */
export class ListingEndedError extends BlobStoreUnavailableError {
  override readonly name: string = 'ListingEndedError';

  constructor() {
    super('unreachable', 'The blobs are listed in another store by now: the listing begins again');
  }
}

/** Where a listing goes on, with the name of the store. Keys have no `@`. */
export function markCursor(next: string | null, store: string): string | null {
  return next === null ? null : `${next}@${store}`;
}

/** The store of a position in a listing, and the position there. `store` null: it has no name. */
export function readCursor(after: string): { readonly store: string | null; readonly after: string } {
  const at = after.lastIndexOf('@');
  return at < 0 ? { store: null, after } : { store: after.slice(at + 1), after: after.slice(0, at) };
}

import { BlobStoreUnavailableError } from './blob-store.ts';

/** The listed store is gone. Other stores have another order, so continuing there would skip blobs: list again. */
export class ListingEndedError extends BlobStoreUnavailableError {
  override readonly name: string = 'ListingEndedError';

  constructor() {
    super('unreachable', 'The blobs have moved to another store; the listing starts again');
  }
}

/** Adds the name of the store to the cursor of a listing. Keys contain no `@`. */
export function markCursor(next: string | null, store: string): string | null {
  return next === null ? null : `${next}@${store}`;
}

export function readCursor(after: string): { readonly store: string | null; readonly after: string } {
  const at = after.lastIndexOf('@');
  return at < 0 ? { store: null, after } : { store: after.slice(at + 1), after: after.slice(0, at) };
}

import { DamagedBytesError } from './document-codec.ts';
import { type DocumentLocation, DocumentMissingError, type DocumentStore } from './document-store.ts';

/** The bytes are wrong or missing; the store could be reached. */
export function isDamage(error: unknown): error is DamagedBytesError | DocumentMissingError {
  return error instanceof DamagedBytesError || error instanceof DocumentMissingError;
}

/** Runs in bounded memory. Returns the error found in the bytes. Throws the blob store's errors and the reason of `signal`. */
export async function findDamage(
  documents: DocumentStore,
  location: DocumentLocation,
  signal?: AbortSignal,
): Promise<Error | null> {
  try {
    for await (const _ of documents.open(location)) signal?.throwIfAborted();
    return null;
  } catch (error) {
    if (isDamage(error)) return error;
    throw error;
  }
}

import { DamagedBytesError } from './document-codec.ts';
import { DocumentMissingError, type DocumentPlace, type DocumentStore } from './document-store.ts';

/** Whether the bytes are wrong, or not there; not when the store could not be asked. */
export function isDamage(error: unknown): error is DamagedBytesError | DocumentMissingError {
  return error instanceof DamagedBytesError || error instanceof DocumentMissingError;
}

/**
 * Reads a document to its end, in bounded memory, and returns what is wrong with its bytes; null when nothing is. Throws what
 * the blob store throws, and `signal`'s reason.
 */
export async function findDamage(
  documents: DocumentStore,
  place: DocumentPlace,
  signal?: AbortSignal,
): Promise<Error | null> {
  try {
    for await (const _ of documents.open(place)) signal?.throwIfAborted();
    return null;
  } catch (error) {
    if (isDamage(error)) return error;
    throw error;
  }
}

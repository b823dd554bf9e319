/** Smaller buffers may share their memory with others that have nothing to do with them (`Buffer.poolSize`). */
const minBytes = 64 * 1024;

/**
 * Frees the memory of a buffer of 64 KiB or more at once. It is empty afterwards, and so is everything that shares its memory: only for
 * buffers that nobody else has, and that no other thread and no socket still reads. Otherwise memory outside V8's heap waits for a
 * collection, and for one of the whole heap if it was in use for some time; much of it makes V8 collect the whole heap often.
 */
export function freeBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= minBytes) buffer.transfer(0);
}

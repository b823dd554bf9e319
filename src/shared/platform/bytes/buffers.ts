/** The parts as one buffer; a single one is not copied. */
export function joined(parts: readonly Buffer[], totalBytes?: number): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts, totalBytes);
}

/** Smaller buffers are hardly worth it. Those out of `Buffer`'s pool share their memory with others. */
const minBytes = Math.max(64 * 1024, Buffer.poolSize);

/**
 * Frees the memory of a buffer of more than 64 KiB at once. It is empty afterwards, and so is everything that shares its memory: only for buffers
 * without other owners, which no other thread or socket still reads. Otherwise memory outside V8's heap waits for a
 * collection, and for one of the whole heap if it was in use for some time; much of it makes V8 collect the whole heap often.
 */
export function freeBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > minBytes) buffer.transfer(0);
}

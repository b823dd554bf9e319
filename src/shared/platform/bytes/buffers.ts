/** A single part is not copied. */
export function joined(parts: readonly Buffer[], totalBytes?: number): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts, totalBytes);
}

/** Smaller buffers are hardly worth it. Buffers from the pool of `Buffer` share their memory. */
const minBytes = Math.max(64 * 1024, Buffer.poolSize);

/**
 * Frees the memory of a buffer of more than 64 KiB at once. Everything that shares its memory is empty afterwards. Only for buffers that no
 * other owner, thread or socket still reads. Otherwise, memory outside V8's heap waits for a collection: of the whole heap if it was in use
 * for some time. Much of it makes V8 collect the whole heap often.
 */
export function freeBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > minBytes) buffer.transfer(0);
}

import { pipeline, Readable } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import { type Static, Type } from 'typebox';
import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import type { Span } from '../platform/json/json-scanner.ts';
import { inTurns } from '../platform/turns/turns.ts';

/** Bytes that can be read more than once, always the same. */
export type ByteSource = () => AsyncIterable<Buffer>;

/** How the bytes of a request body were encoded on the wire. */
export const BodyEncoding = Type.Union([Type.Literal('gzip'), Type.Literal('identity')]);
export type BodyEncoding = Static<typeof BodyEncoding>;

/** Bodies as short as a batch of journal entries are inflated at once: the way to another thread and back takes longer. */
const syncGunzipBytes = 16 * 1024;
const syncInflatedBytes = 128 * 1024;

/** A source over bytes in memory. */
export function bytesOf(...parts: readonly Buffer[]): ByteSource {
  return () => inTurns(parts);
}

/** The parts one after another, ranges being cut out of `source`. They must be in the order of its bytes. */
export function cutOut(source: ByteSource, parts: readonly (Buffer | Span)[]): ByteSource {
  return async function* () {
    for (const part of parts) {
      if (Buffer.isBuffer(part)) yield part;
      else yield* range(source, part.start, part.end);
    }
  };
}

/**
 * The inflated bytes of `source`. Fails with InvalidRequestError when they are not gzip or cut short, and with
 * PayloadTooLargeError once more than `maxBytes` came out: a small body can hold a very large one.
 */
export async function* inflate(source: ByteSource, encoding: BodyEncoding, maxBytes: number): AsyncGenerator<Buffer> {
  let total = 0;
  // Bodies in memory would otherwise be read to their end in one turn of the event loop.
  for await (const chunk of inTurns(encoding === 'gzip' ? gunzipStream(source) : source())) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

/** As `inflate`, for a body that is in memory already. */
export async function inflateWhole(body: Buffer, encoding: BodyEncoding, maxBytes: number): Promise<Buffer> {
  if (encoding === 'identity') {
    if (body.length > maxBytes) throw tooLarge(maxBytes);
    return body;
  }
  try {
    if (body.length <= syncGunzipBytes) {
      const inflated = gunzipShort(body, Math.min(maxBytes, syncInflatedBytes));
      if (inflated) return inflated;
    }
  } catch (error) {
    throw badGzip(error);
  }
  // Pieces that are put together in the end would take twice the memory. What is not written to takes none.
  const whole = Buffer.allocUnsafeSlow(maxBytes);
  let bytes = 0;
  for await (const chunk of inflate(bytesOf(body), encoding, maxBytes)) bytes += chunk.copy(whole, bytes);
  return whole.subarray(0, bytes);
}

/** Size that a gzip body states at its end (modulo 4 GiB), for its last member; it may turn out larger. */
export function claimedBytes(body: Buffer, encoding: BodyEncoding): number {
  if (encoding === 'identity' || body.length < 18) return body.length;
  return body.readUInt32LE(body.length - 4);
}

/** The inflated body; null when it is larger than `maxBytes`. */
function gunzipShort(body: Buffer, maxBytes: number): Buffer | null {
  try {
    return gunzipSync(body, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw error;
  }
}

async function* gunzipStream(source: ByteSource): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: 64 * 1024 });
  let sourceError: unknown;
  const encoded = async function* (): AsyncGenerator<Buffer> {
    try {
      yield* source();
    } catch (error) {
      // Kept, so that a fault of the source does not come out as bad gzip. The decoder's own is thrown in here as well.
      if (decoder.errored === null) sourceError = error;
      throw error;
    }
  };
  const stream = pipeline(Readable.from(encoded()), decoder, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    throw sourceError ?? badGzip(error);
  } finally {
    stream.destroy();
  }
}

async function* range(source: ByteSource, start: number, end: number): AsyncGenerator<Buffer> {
  let offset = 0;
  for await (const chunk of source()) {
    const from = Math.max(start - offset, 0);
    const to = Math.min(end - offset, chunk.length);
    if (from < to) yield chunk.subarray(from, to);
    offset += chunk.length;
    if (offset >= end) return;
  }
}

function tooLarge(maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(
    `The body is larger than the ${maxBytes} bytes that this server accepts (decompressed)`,
  );
}

function badGzip(cause: unknown): InvalidRequestError {
  return new InvalidRequestError('The body is not complete, valid gzip', { cause });
}

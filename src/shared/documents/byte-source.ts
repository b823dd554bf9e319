import { pipeline, Readable } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import { type Static, Type } from 'typebox';
import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import type { Span } from '../platform/json/json-scanner.ts';
import { inTurns } from '../platform/turns/turns.ts';

/** Bytes that can be read more than once, with the same result each time. */
export type ByteSource = () => AsyncIterable<Buffer>;

/** How the bytes of a request body were encoded on the wire. */
export const BodyEncoding = Type.Union([Type.Literal('gzip'), Type.Literal('identity')]);
export type BodyEncoding = Static<typeof BodyEncoding>;

/** Bodies as short as a batch of journal entries are inflated synchronously: a round trip to another thread takes longer. */
const syncGunzipBytes = 16 * 1024;
const syncInflatedBytes = 128 * 1024;

/** A source of bytes in memory. */
export function bytesOf(...parts: readonly Buffer[]): ByteSource {
  return () => inTurns(parts);
}

/** Concatenates the parts. Ranges are cut out of `source` and must be in ascending order. */
export function cutOut(source: ByteSource, parts: readonly (Buffer | Span)[]): ByteSource {
  return async function* () {
    for (const part of parts) {
      if (Buffer.isBuffer(part)) yield part;
      else yield* range(source, part.start, part.end);
    }
  };
}

/**
 * The inflated bytes of `source`. Throws InvalidRequestError if they are not gzip or are cut short, and PayloadTooLargeError
 * once the output exceeds `maxBytes`: a small body can inflate to a very large one.
 */
export async function* inflate(source: ByteSource, encoding: BodyEncoding, maxBytes: number): AsyncGenerator<Buffer> {
  let total = 0;
  // Otherwise a body in memory would be read completely in one turn of the event loop.
  for await (const chunk of inTurns(encoding === 'gzip' ? gunzipStream(source) : source())) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

/** Like `inflate`, for a body in memory. */
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
  // Concatenating chunks at the end would take twice the memory. Allocated pages that are never written take none.
  const whole = Buffer.allocUnsafeSlow(maxBytes);
  let bytes = 0;
  for await (const chunk of inflate(bytesOf(body), encoding, maxBytes)) bytes += chunk.copy(whole, bytes);
  return whole.subarray(0, bytes);
}

/** Inflated size (modulo 4 GiB) that a gzip body states at its end for its last member; the actual size may be larger. */
export function claimedBytes(body: Buffer, encoding: BodyEncoding): number {
  if (encoding === 'identity' || body.length < 18) return body.length;
  return body.readUInt32LE(body.length - 4);
}

/** The inflated body, or null if it is larger than `maxBytes`. */
function gunzipShort(body: Buffer, maxBytes: number): Buffer | null {
  try {
    return gunzipSync(body, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw error;
  }
}

async function* gunzipStream(source: ByteSource): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: 128 * 1024 });
  let sourceError: unknown;
  const encoded = async function* (): AsyncGenerator<Buffer> {
    try {
      yield* source();
    } catch (error) {
      // Kept, so that an error of the source is not reported as bad gzip. The decoder's own error is thrown in here too.
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

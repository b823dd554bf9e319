import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gunzip, gunzipSync } from 'node:zlib';
import { type Static, Type } from 'typebox';
import { type ByteSource, bytesOf } from '../bytes/byte-source.ts';
import { codeOf } from '../errors/causes.ts';
import { InvalidRequestError, PayloadTooLargeError } from '../errors/errors.ts';
import { inSlices } from '../slices/slices.ts';

/** The encoding of a body on the wire. */
export const BodyEncoding = Type.Union([Type.Literal('gzip'), Type.Literal('identity')]);
export type BodyEncoding = Static<typeof BodyEncoding>;

/**
 * Bodies up to this inflated size are inflated at once, in 1 to 2 ms. A round trip to another thread would double the CPU time, and a
 * stream would triple it. Larger ones are inflated in one call up to `wholeInflatedBytes`.
 */
const syncInflatedBytes = 512 * 1024;
const wholeInflatedBytes = 8 * 1024 * 1024;

/** For bodies that are larger than they claim. */
const minChunkBytes = 16 * 1024;
const gunzipInPool = promisify(gunzip);

/**
 * Throws InvalidRequestError for bytes that are not gzip or are cut short, and PayloadTooLargeError above `maxBytes`: a small body can
 * inflate to a very large one.
 */
export async function* inflate(source: ByteSource, encoding: BodyEncoding, maxBytes: number): AsyncGenerator<Buffer> {
  let total = 0;
  // Without slices, a body in memory would be read completely in one event loop tick.
  for await (const chunk of inSlices(encoding === 'gzip' ? gunzipStream(source) : source())) {
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
  if (maxBytes <= wholeInflatedBytes) return gunzipAtOnce(body, maxBytes);
  // Concatenating chunks at the end would take twice the memory. Allocated pages take none until they are written.
  const whole = Buffer.allocUnsafeSlow(maxBytes);
  let bytes = 0;
  for await (const chunk of inflate(bytesOf(body), encoding, maxBytes)) bytes += chunk.copy(whole, bytes);
  return whole.subarray(0, bytes);
}

/** Returns the size (modulo 4 GiB) that a gzip body states at its end for its last member. The actual size may be larger. */
export function claimedBytes(body: Buffer, encoding: BodyEncoding): number {
  if (encoding === 'identity' || body.length < 18) return body.length;
  return body.readUInt32LE(body.length - 4);
}

async function gunzipAtOnce(body: Buffer, maxBytes: number): Promise<Buffer> {
  // One chunk for everything, with a spare byte: zlib allocates another chunk when one is full.
  const claimed = Math.min(claimedBytes(body, 'gzip'), maxBytes) + 1;
  const options = { maxOutputLength: maxBytes, chunkSize: Math.max(claimed, minChunkBytes) };
  try {
    return maxBytes <= syncInflatedBytes ? gunzipSync(body, options) : await gunzipInPool(body, options);
  } catch (error) {
    throw codeOf(error) === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(maxBytes) : badGzip(error);
  }
}

async function* gunzipStream(source: ByteSource): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: 128 * 1024 });
  let sourceError: unknown;
  const encoded = async function* (): AsyncGenerator<Buffer> {
    try {
      yield* source();
    } catch (error) {
      // An error of the source must not be reported as invalid gzip. The decoder's own error also arrives here.
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

function tooLarge(maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(
    `The body is larger than the ${maxBytes} bytes that this server accepts (decompressed)`,
  );
}

function badGzip(cause: unknown): InvalidRequestError {
  return new InvalidRequestError('The body is not complete, valid gzip', { cause });
}

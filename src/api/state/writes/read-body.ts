import type { FastifyRequest } from 'fastify';
import type { Config } from '../../../shared/platform/config/config.ts';
import { PayloadTooLargeError } from '../../../shared/platform/errors/errors.ts';
import { freeBuffer } from '../../../shared/platform/memory/free-buffer.ts';
import { type BodyBuffer, parsedWeight, rawWeight } from '../../../shared/state/documents/body-buffer.ts';
import { type BodyEncoding, bytesOf, claimedBytes } from '../../../shared/state/documents/byte-source.ts';
import type { OpenedBody, WriteBody } from '../../../shared/state/documents/write-body.ts';
import { bodyEncoding, checkedBody, collectBody, declaredBytes } from '../../platform/http/body.ts';

/** Bodies that declare a larger inflated size go to a worker, however small they arrive; so do deltas of a larger document. */
const maxDirectInflatedBytes = 8 * 1024 * 1024;

/** A body as the API receives it: buffered if small, otherwise a stream. */
export interface IncomingBody {
  readonly encoding: BodyEncoding;
  readonly declared: number | null;
  /** The buffered body if the API commits it itself, otherwise null. */
  readonly direct: Buffer | null;
  /** The body for a worker, still compressed. */
  readonly stream: AsyncIterable<Buffer>;
}

/**
 * Buffers a small body (up to `HOLDFAST_DIRECT_BYTES`, as sent) and leaves a larger one to be read as a stream. Throws
 * UnsupportedMediaTypeError and what `collectBody` throws.
 */
export async function readBody(request: FastifyRequest, { limits }: Config): Promise<IncomingBody> {
  const encoding = bodyEncoding(request);
  const declared = declaredBytes(request);
  const { directBytes: maxBytes, minBodyBytesPerSecond } = limits;
  if (declared === null || declared > maxBytes) {
    return { encoding, declared, direct: null, stream: checkedBody(request.raw, minBodyBytesPerSecond) };
  }
  const body = await collectBody(request.raw, declared, { maxBytes, minBodyBytesPerSecond });
  const isSmall = claimedBytes(body, encoding) <= maxDirectInflatedBytes;
  return { encoding, declared, direct: isSmall ? body : null, stream: bytesOf(body)() };
}

export interface MemoryBodyOptions {
  readonly bodyBuffer: BodyBuffer;
  /** Maximum inflated size of a body that is parsed, in bytes. */
  readonly maxBatchBytes: number;
  /** Maximum wait for memory, in ms. */
  readonly waitMs: number;
  /** The organization whose share of the memory it counts against. */
  readonly fairnessKey: string;
}

/**
 * A small body in memory, inflated only once unless it turns out larger than it declares. The memory it reserves for the inflated
 * body is released when it is disposed.
 */
export class MemoryBody implements WriteBody, Disposable {
  readonly #body: Buffer;
  readonly #encoding: BodyEncoding;
  readonly #options: MemoryBodyOptions;
  #release = (): void => {};

  constructor(body: Buffer, encoding: BodyEncoding, options: MemoryBodyOptions) {
    this.#body = body;
    this.#encoding = encoding;
    this.#options = options;
  }

  async open({ parsed = false } = {}): Promise<OpenedBody> {
    try {
      const inflated = await (parsed
        ? this.#inflate(this.#options.maxBatchBytes, parsedWeight)
        : this.#inflate(maxDirectInflatedBytes, rawWeight));
      return {
        body: bytesOf(inflated),
        encoding: 'identity',
        inflated,
        maxBaseBytes: maxDirectInflatedBytes,
        free: () => this.#free(inflated),
      };
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError)) throw error;
      // With several gzip members, only the size of the last one is known in advance, so the body is read as a stream, like any
      // large body. So is a delta that is too large, which is refused there.
      return {
        body: bytesOf(this.#body),
        encoding: this.#encoding,
        inflated: null,
        maxBaseBytes: maxDirectInflatedBytes,
      };
    }
  }

  async use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T> {
    return work(await this.#inflate(this.#options.maxBatchBytes, parsedWeight));
  }

  [Symbol.dispose](): void {
    this.#release();
  }

  #free(inflated: Buffer): void {
    // The memory of an uncompressed body is accounted for by the socket.
    if (this.#encoding === 'gzip') freeBuffer(inflated);
    this.#release();
  }

  async #inflate(maxBytes: number, weight: number): Promise<Buffer> {
    const { bodyBuffer, waitMs, fairnessKey } = this.#options;
    const inflated = await bodyBuffer.inflate(this.#body, this.#encoding, { maxBytes, weight, waitMs, fairnessKey });
    this.#release = inflated.release;
    return inflated.body;
  }
}

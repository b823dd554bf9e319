import type { FastifyRequest } from 'fastify';
import { type BodyBuffer, parsedWeight, rawWeight } from '../../shared/documents/body-buffer.ts';
import { type BodyEncoding, bytesOf, claimedBytes } from '../../shared/documents/byte-source.ts';
import type { OpenedBody, WriteBody } from '../../shared/documents/write-body.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import { PayloadTooLargeError } from '../../shared/platform/errors/errors.ts';
import { bodyEncoding, checkedBody, collectBody, declaredBytes } from '../plugins/body.ts';

/** Bodies that claim to inflate to more than this are a worker's work, however small they came. */
const maxDirectInflatedBytes = 8 * 1024 * 1024;

/** A body as the API has it: small ones are all here, the others on their way. */
export interface IncomingBody {
  readonly encoding: BodyEncoding;
  readonly declared: number | null;
  /** The body, when the API commits it itself. */
  readonly direct: Buffer | null;
  /** The body as it is handed to a worker, still compressed. */
  readonly stream: AsyncIterable<Buffer>;
}

/**
 * Takes a small body in (`HOLDFAST_DIRECT_BYTES`, as sent) and leaves a larger one to be read as it comes. Throws
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
  /** Most bytes of a body that is taken apart, inflated. */
  readonly maxBatchBytes: number;
  /** Longest wait for memory, in ms. */
  readonly waitMs: number;
  /** Whose part of the memory it counts to. */
  readonly share: string;
}

/**
 * A small body in memory: inflated once for all, unless it turns out larger than it claims. What it takes of the memory for inflated
 * bodies is held until it is disposed of.
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

  async open({ parsedWeight: isTakenApart = false } = {}): Promise<OpenedBody> {
    try {
      const inflated = await (isTakenApart
        ? this.#inflate(this.#options.maxBatchBytes, parsedWeight)
        : this.#inflate(maxDirectInflatedBytes, rawWeight));
      return { body: bytesOf(inflated), encoding: 'identity', inflated };
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError)) throw error;
      // Of several gzip members only the last one's size is known: to be read as a stream, then, like any large body. So is a
      // delta that is too large, and refused there.
      return { body: bytesOf(this.#body), encoding: this.#encoding, inflated: null };
    }
  }

  async use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T> {
    return work(await this.#inflate(this.#options.maxBatchBytes, parsedWeight));
  }

  [Symbol.dispose](): void {
    this.#release();
  }

  async #inflate(maxBytes: number, weight: number): Promise<Buffer> {
    const { bodyBuffer, waitMs, share } = this.#options;
    const inflated = await bodyBuffer.inflate(this.#body, this.#encoding, { maxBytes, weight, waitMs, share });
    this.#release = inflated.release;
    return inflated.body;
  }
}

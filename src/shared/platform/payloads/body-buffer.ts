import { joined } from '../bytes/buffers.ts';
import { type ByteSource, bytesOf } from '../bytes/byte-source.ts';
import { PayloadTooLargeError } from '../errors/errors.ts';
import type { ByteBudget } from './byte-budget.ts';
import { type BodyEncoding, claimedBytes, inflate, inflateWhole } from './inflate.ts';
import { MemoryInFlightBudget } from './memory-in-flight-budget.ts';
import { arriving } from './reserved-arrival.ts';

/** The body can be read several times. */
export interface OpenedBody {
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
  /** Null unless the body is already inflated and in memory. */
  readonly inflated: Buffer | null;
  /** Set if a worker can take over: larger documents must not be read here. */
  readonly maxBaseBytes?: number;
  /** Frees the memory before the commit. The body cannot be read again. */
  readonly free?: () => void;
}

/** The body is in the memory of the API or in the payload store. */
export interface WriteBody {
  /** For work that reads a stream. Set `parsed` for a body that is parsed, which takes more memory than its bytes. */
  open(options?: { readonly parsed?: boolean }): Promise<OpenedBody>;
  /** Calls `work` with the whole inflated body. Throws PayloadTooLargeError, InvalidRequestError. */
  use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T>;
}

/** The body holds its part of the budget until it is released. */
export interface BufferedBody {
  readonly body: Buffer;
  release(): void;
}

/** Small bodies are not charged, so that a lease can be renewed whatever else is being processed. */
const freeBytes = 64 * 1024;

/** A body of unknown size acquires the budget in these steps. */
const stepBytes = 1024 * 1024;

/** A parsed body exists as bytes, as text and as rows. */
export const parsedWeight = 3;
export const rawWeight = 1;

export interface InflateOptions {
  readonly maxBytes: number;
  /** `parsedWeight` or `rawWeight`. */
  readonly weight: number;
  /** Maximum wait for the budget. */
  readonly waitMs: number;
  /** The bytes are charged to this key, e.g. the organization. */
  readonly fairnessKey?: string;
}

/** Inflates bodies within the process's common budget. */
export class BodyBuffer {
  readonly #maxBytes: number;
  readonly #budget: ByteBudget;
  /** For bodies that have not arrived yet. */
  readonly arrivals: ArrivalBuffer;

  /** A worker parses inflated bodies up to `maxBytes`. `budgetBytes` is for bodies that are being received. */
  constructor(maxBytes: number, budget: ByteBudget, budgetBytes: number) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
    this.arrivals = new ArrivalBuffer(budgetBytes);
  }

  /**
   * Acquires the size that the gzip claims. A larger body is first measured, which takes no memory. Throws PayloadTooLargeError,
   * InvalidRequestError, and UnavailableError if the wait was too long.
   */
  async inflate(body: Buffer, encoding: BodyEncoding, options: InflateOptions): Promise<BufferedBody> {
    const { maxBytes } = options;
    const claimed = Math.max(claimedBytes(body, encoding), Math.min(freeBytes, maxBytes));
    const asClaimed = claimed <= maxBytes ? await this.#inflateTo(claimed, body, encoding, options) : null;
    if (asClaimed) return asClaimed;
    let bytes = 0;
    for await (const chunk of inflate(bytesOf(body), encoding, maxBytes)) bytes += chunk.length;
    return (await this.#inflateTo(bytes, body, encoding, options)) as BufferedBody;
  }

  /** Returns null if the body is larger. */
  async #inflateTo(
    expected: number,
    body: Buffer,
    encoding: BodyEncoding,
    { weight, waitMs, fairnessKey = '' }: InflateOptions,
  ): Promise<BufferedBody | null> {
    const cost = costOf(expected, weight);
    await this.#budget.acquire(cost, waitMs, fairnessKey);
    try {
      const inflated = await inflateWhole(body, encoding, expected);
      const actual = costOf(inflated.length, weight);
      this.#budget.release(cost - actual, fairnessKey);
      return { body: inflated, release: once(() => this.#budget.release(actual, fairnessKey)) };
    } catch (error) {
      this.#budget.release(cost, fairnessKey);
      if (error instanceof PayloadTooLargeError) return null;
      throw error;
    }
  }

  /**
   * Waits for the budget without a limit. Throws InvalidRequestError and PayloadTooLargeError. After the latter, the CLI halves a batch of
   * entries, or sends the whole checkpoint instead of a delta.
   */
  async use<T>(
    source: ByteSource,
    encoding: BodyEncoding,
    work: (body: Buffer) => Promise<T>,
    fairnessKey = '',
  ): Promise<T> {
    const { body, release } = await this.#collect(source, encoding, fairnessKey);
    try {
      return await work(body);
    } finally {
      release();
    }
  }

  async #collect(source: ByteSource, encoding: BodyEncoding, fairnessKey: string): Promise<BufferedBody> {
    for (let expected = 0; ; ) {
      const collected = await this.#attempt(source, encoding, { expected, fairnessKey });
      if (typeof collected !== 'number') return collected;
      expected = collected;
    }
  }

  /**
   * Returns the size if the budget did not suffice. Waits for `expected` bytes of the budget, but not for more: otherwise, bodies that are
   * each half read could wait for each other.
   */
  async #attempt(
    source: ByteSource,
    encoding: BodyEncoding,
    { expected, fairnessKey }: { expected: number; fairnessKey: string },
  ): Promise<BufferedBody | number> {
    let held = costOf(expected, parsedWeight);
    await this.#budget.acquire(held, null, fairnessKey);
    let chunks: Buffer[] | null = [];
    let bytes = 0;
    try {
      for await (const chunk of inflate(source, encoding, this.#maxBytes)) {
        bytes += chunk.length;
        if (chunks === null) continue;
        chunks.push(chunk);
        const more = costOf(bytes, parsedWeight) - held;
        if (more <= 0) continue;
        const step = Math.max(more, Math.min(stepBytes, this.#maxBytes) * parsedWeight);
        if (this.#budget.tryGrow(held, step, fairnessKey)) {
          held += step;
        } else {
          chunks = null;
          this.#budget.release(held, fairnessKey);
          held = 0;
        }
      }
    } catch (error) {
      this.#budget.release(held, fairnessKey);
      throw error;
    }
    if (chunks === null) return bytes;
    const body = joined(chunks);
    const actual = costOf(bytes, parsedWeight);
    this.#budget.release(held - actual, fairnessKey);
    return { body, release: once(() => this.#budget.release(actual, fairnessKey)) };
  }
}

/** Receives bodies within the process's common budget. */
class ArrivalBuffer {
  readonly #inFlight: MemoryInFlightBudget;
  readonly #budgetBytes: number;

  constructor(budgetBytes: number) {
    this.#inFlight = new MemoryInFlightBudget(budgetBytes);
    this.#budgetBytes = budgetBytes;
  }

  /** Bytes of received bodies that are not released yet. */
  get bytes(): number {
    return this.#inFlight.used;
  }

  /**
   * The body stays encoded. Reads no more than the budget allows. Bodies declared as small are not charged. Throws PayloadTooLargeError,
   * BudgetExhaustedError, ReservationLostError and the body's own error.
   */
  async receive(
    body: AsyncIterable<Buffer>,
    {
      declaredBytes,
      maxBytes,
      fairnessKey = '',
      gone,
    }: { declaredBytes: number | null; maxBytes: number; fairnessKey?: string; gone?: AbortSignal },
  ): Promise<BufferedBody> {
    const claim = declaredBytes ?? maxBytes;
    const reservation =
      claim <= freeBytes ? null : this.#inFlight.enter({ claim: declaredBytes, waits: true, fairnessKey, gone });
    const buffer = new GrowingBuffer(declaredBytes ?? 0);
    try {
      const options = { declaredBytes, maxBytes, budget: 'imports', fairnessKey } as const;
      for await (const chunk of reservation ? arriving(body, reservation, options, this.#budgetBytes) : body)
        buffer.push(chunk);
      const bytes = buffer.bytes.length;
      if (!reservation) return { body: buffer.bytes, release: () => {} };
      this.#inFlight.keep(reservation, bytes);
      return { body: buffer.bytes, release: once(() => this.#inFlight.release(bytes, fairnessKey)) };
    } catch (error) {
      if (reservation) this.#inFlight.leave(reservation);
      throw error;
    }
  }
}

/** One contiguous buffer. Allocated pages take no memory until they are written. */
class GrowingBuffer {
  #buffer: Buffer;
  #length = 0;

  constructor(expectedBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(expectedBytes);
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  push(chunk: Buffer): void {
    if (this.#length + chunk.length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#length + chunk.length, this.#buffer.length * 2));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#length += chunk.copy(this.#buffer, this.#length);
  }
}

function costOf(bytes: number, weight: number): number {
  return bytes <= freeBytes ? 0 : bytes * weight;
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

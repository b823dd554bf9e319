import { PayloadTooLargeError } from '../platform/errors/errors.ts';
import { arriving } from '../platform/payloads/arriving-body.ts';
import type { ByteBudget } from '../platform/payloads/byte-budget.ts';
import { MemoryRoom } from '../platform/payloads/memory-room.ts';
import { type BodyEncoding, type ByteSource, bytesOf, claimedBytes, inflate, inflateWhole } from './byte-source.ts';

/** Bodies up to this size, inflated, do not count: a lease is renewed whatever else is in hand. */
const freeBytes = 64 * 1024;
/** Steps in which a body of unknown size takes more of the budget. */
const stepBytes = 1024 * 1024;

/** Memory that a body takes, by its size: one that is parsed is there as bytes, as text and as rows. */
export const parsedWeight = 3;
export const rawWeight = 1;

export interface InflateOptions {
  readonly maxBytes: number;
  /** `parsedWeight` or `rawWeight`. */
  readonly weight: number;
  /** Longest wait for a share of the budget, in ms. */
  readonly waitMs: number;
  /** Whose turn it counts to, e.g. the organization. */
  readonly share?: string;
}

/** A body in memory; its share of the budget is held until it is released. */
export interface InflatedBody {
  readonly body: Buffer;
  release(): void;
}

/** Takes in and inflates bodies that are held in memory whole, within the process's budgets for all of them. */
export class BodyBuffer {
  readonly #maxBytes: number;
  readonly #budget: ByteBudget;
  readonly #room: MemoryRoom;
  readonly #roomBytes: number;

  /** `maxBytes` is the largest body that a worker takes apart, `roomBytes` the room for bodies as they come in. */
  constructor(maxBytes: number, budget: ByteBudget, roomBytes: number) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
    this.#room = new MemoryRoom(roomBytes);
    this.#roomBytes = roomBytes;
  }

  /** Bytes of the bodies that `receive` has taken in and that were not released. */
  get bytesArrived(): number {
    return this.#room.used;
  }

  /**
   * The whole body as it comes, still encoded; it is read no further than there is room for it. Those that say that they are small do not count.
   * Throws PayloadTooLargeError, NoRoomError, RoomLostError and the body's own error.
   */
  async receive(
    body: AsyncIterable<Buffer>,
    { declaredBytes, maxBytes, share = '' }: { declaredBytes: number | null; maxBytes: number; share?: string },
  ): Promise<InflatedBody> {
    const claim = declaredBytes ?? maxBytes;
    const place = claim <= freeBytes ? null : this.#room.enter({ claim: declaredBytes, waits: true, share });
    const whole = new GrowingBuffer(declaredBytes ?? 0);
    try {
      const options = { declaredBytes, maxBytes, room: 'imports', share } as const;
      for await (const chunk of place ? arriving(body, place, options, this.#roomBytes) : body) whole.push(chunk);
      const bytes = whole.bytes.length;
      if (!place) return { body: whole.bytes, release: () => {} };
      this.#room.keep(place, bytes);
      return { body: whole.bytes, release: once(() => this.#room.release(bytes, share)) };
    } catch (error) {
      if (place) this.#room.leave(place);
      throw error;
    }
  }

  /**
   * The inflated body of one that is in memory already. Takes of the budget what the gzip claims; of one that turns out larger
   * the size is found out first, which takes no memory. Throws PayloadTooLargeError, InvalidRequestError, and UnavailableError
   * when the wait was too long.
   */
  async inflate(body: Buffer, encoding: BodyEncoding, options: InflateOptions): Promise<InflatedBody> {
    const { maxBytes } = options;
    const claimed = Math.max(claimedBytes(body, encoding), Math.min(freeBytes, maxBytes));
    const asClaimed = claimed <= maxBytes ? await this.#inflateTo(claimed, body, encoding, options) : null;
    if (asClaimed) return asClaimed;
    let bytes = 0;
    for await (const chunk of inflate(bytesOf(body), encoding, maxBytes)) bytes += chunk.length;
    return (await this.#inflateTo(bytes, body, encoding, options)) as InflatedBody;
  }

  /** The body; null when it is larger than `expected` bytes. */
  async #inflateTo(
    expected: number,
    body: Buffer,
    encoding: BodyEncoding,
    { weight, waitMs, share = '' }: InflateOptions,
  ): Promise<InflatedBody | null> {
    const cost = costOf(expected, weight);
    await this.#budget.acquire(cost, waitMs, share);
    try {
      const inflated = await inflateWhole(body, encoding, expected);
      const actual = costOf(inflated.length, weight);
      this.#budget.release(cost - actual, share);
      return { body: inflated, release: once(() => this.#budget.release(actual, share)) };
    } catch (error) {
      this.#budget.release(cost, share);
      if (error instanceof PayloadTooLargeError) return null;
      throw error;
    }
  }

  /**
   * What `work` makes of the inflated body of a job, which waits as long as it takes. Throws PayloadTooLargeError, upon which
   * the CLI halves a batch of entries and sends the whole checkpoint instead of a delta, and InvalidRequestError.
   */
  async use<T>(source: ByteSource, encoding: BodyEncoding, work: (body: Buffer) => Promise<T>, share = ''): Promise<T> {
    const { body, release } = await this.#collect(source, encoding, share);
    try {
      return await work(body);
    } finally {
      release();
    }
  }

  async #collect(source: ByteSource, encoding: BodyEncoding, share: string): Promise<InflatedBody> {
    for (let expected = 0; ; ) {
      const collected = await this.#attempt(source, encoding, { expected, share });
      if (typeof collected !== 'number') return collected;
      expected = collected;
    }
  }

  /**
   * The body; or its size, when there was no room for all of it. Room for `expected` bytes is waited for. For more it is not:
   * bodies that are each half in could wait for each other.
   */
  async #attempt(
    source: ByteSource,
    encoding: BodyEncoding,
    { expected, share }: { expected: number; share: string },
  ): Promise<InflatedBody | number> {
    let held = costOf(expected, parsedWeight);
    await this.#budget.acquire(held, null, share);
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
        if (this.#budget.tryGrow(held, step, share)) {
          held += step;
        } else {
          chunks = null;
          this.#budget.release(held, share);
          held = 0;
        }
      }
    } catch (error) {
      this.#budget.release(held, share);
      throw error;
    }
    if (chunks === null) return bytes;
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
    const actual = costOf(bytes, parsedWeight);
    this.#budget.release(held - actual, share);
    return { body, release: once(() => this.#budget.release(actual, share)) };
  }
}

/** Bytes that come in pieces, in one place from the beginning. What is not written to takes no memory. */
class GrowingBuffer {
  #buffer: Buffer;
  #length = 0;

  constructor(expectedBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(expectedBytes);
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  push(piece: Buffer): void {
    if (this.#length + piece.length > this.#buffer.length) {
      const wider = Buffer.allocUnsafeSlow(Math.max(this.#length + piece.length, this.#buffer.length * 2));
      this.#buffer.copy(wider, 0, 0, this.#length);
      this.#buffer = wider;
    }
    this.#length += piece.copy(this.#buffer, this.#length);
  }
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

function costOf(bytes: number, weight: number): number {
  return bytes <= freeBytes ? 0 : bytes * weight;
}

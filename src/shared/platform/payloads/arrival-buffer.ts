import { MemoryInFlightBudget } from './memory-in-flight-budget.ts';
import { arriving } from './reserved-arrival.ts';

/** Inflated bodies up to this size are not charged, so that a lease can be renewed whatever else is being processed. */
export const freeBytes = 64 * 1024;

/** A body in memory, which holds its part of the budget until it is released. */
export interface BufferedBody {
  readonly body: Buffer;
  release(): void;
}

/** Receives bodies into memory, within the process's common budget. */
export class ArrivalBuffer {
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
   * Buffers a whole body, still encoded. Reads no more than the budget allows. Bodies declared as small are not charged. Throws
   * PayloadTooLargeError, BudgetExhaustedError, ReservationLostError and the body's own error.
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

/** Collects chunks in one contiguous buffer. Allocated pages take no memory until they are written. */
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

/** Returns a function that runs `work` only the first time. */
export function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

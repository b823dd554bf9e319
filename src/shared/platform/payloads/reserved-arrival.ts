import { PayloadTooLargeError } from '../errors/errors.ts';
import { type PayloadOptions, ReservationLostError } from './payload-store.ts';

/** An active sender sends this much within the stall time. */
const paceBytes = 32 * 1024;

/** Detects a sender that keeps the server waiting for long. */
export class StallTimer {
  #bytes = 0;
  #waitedMs = 0;
  #waitingSince: number | null = null;

  startWait(): void {
    this.#waitingSince = performance.now();
  }

  received(bytes: number): void {
    this.#waitedMs += performance.now() - (this.#waitingSince ?? performance.now());
    this.#waitingSince = null;
    this.#bytes += bytes;
    if (this.#bytes < paceBytes) return;
    this.#bytes = 0;
    this.#waitedMs = 0;
  }

  /** The wait since the sender last completed `paceBytes`; 0 if the server is not waiting for it now. */
  get waitedMs(): number {
    return this.#waitingSince === null ? 0 : this.#waitedMs + performance.now() - this.#waitingSince;
  }
}

export interface Reservation {
  readonly pace: StallTimer;
  /** Throws BudgetExhaustedError and ReservationLostError. */
  acquire(bytes: number): Promise<void>;
  readonly lost: boolean;
  /** Called if the reservation is lost while the next chunk is awaited. */
  onLost: (error: Error) => void;
}

/** Bytes reserved ahead of arrival. */
const stepBytes = 1024 * 1024;

/**
 * Reads no more than is reserved for the body. Throws PayloadTooLargeError, BudgetExhaustedError, ReservationLostError and the errors of
 * the body.
 */
export async function* arriving(
  body: AsyncIterable<Buffer>,
  reservation: Reservation,
  { declaredBytes, maxBytes }: PayloadOptions,
  capacity: number,
): AsyncGenerator<Buffer> {
  assertDeclaredSize(declaredBytes, maxBytes);
  const step = Math.max(Math.min(stepBytes, Math.floor(capacity / 8)), 1);
  let reserved = 0;
  let bytes = 0;
  const reserve = async (needed: number): Promise<void> => {
    const ahead = Math.min(step, (declaredBytes ?? maxBytes) - reserved);
    const more = Math.max(needed, ahead);
    await reservation.acquire(more);
    reserved += more;
  };
  if (declaredBytes !== 0) await reserve(1);
  const iterator = body[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      if (reservation.lost) throw new ReservationLostError();
      const next = Promise.withResolvers<IteratorResult<Buffer>>();
      reservation.onLost = next.reject;
      reservation.pace.startWait();
      iterator.next().then(next.resolve, next.reject);
      const { done, value } = await next.promise;
      if (done) {
        ended = true;
        return;
      }
      reservation.pace.received(value.length);
      bytes += value.length;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      if (bytes > reserved) await reserve(bytes - reserved);
      yield value;
    }
  } finally {
    reservation.onLost = () => {};
    // A silent sender would delay the response.
    if (!ended) void iterator.return?.().catch(() => {});
  }
}

function assertDeclaredSize(declaredBytes: number | null, maxBytes: number): void {
  if (declaredBytes !== null && declaredBytes > maxBytes) throw tooLarge(maxBytes);
}

function tooLarge(maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`The body is larger than the ${maxBytes} bytes that this server accepts`);
}

import { type ArrivingBody, BudgetSums } from './budget-sums.ts';
import {
  type BudgetTimes,
  chooseEvictions,
  defaultBudgetTimes,
  maxWaitingPerKey,
  mayAcquire,
  mayWait,
} from './in-flight-rules.ts';
import { BudgetExhaustedError, ReservationLostError } from './payload-store.ts';
import { type Reservation, StallTimer } from './reserved-arrival.ts';

const pollMs = 250;

export class MemoryReservation implements ArrivingBody, Reservation {
  readonly #budget: MemoryInFlightBudget;
  readonly #stallMs: number;
  readonly claim: number | null;
  readonly yields: boolean;
  readonly fairnessKey: string;
  readonly keyLimit: number | null;
  readonly gone: AbortSignal | undefined;
  readonly pace = new StallTimer();
  readonly waits: boolean;
  held = 0;
  blockedSince: number | null = null;
  evicted = false;
  waiting: { bytes: number; resolve: () => void; reject: (error: Error) => void } | null = null;
  onLost: (error: Error) => void = () => {};

  constructor(budget: MemoryInFlightBudget, body: NewBody, times: BudgetTimes) {
    this.#budget = budget;
    this.claim = body.claim;
    this.waits = body.waits;
    this.fairnessKey = body.fairnessKey ?? '';
    this.keyLimit = body.keyLimit ?? null;
    this.gone = body.gone;
    this.yields = !body.waits || body.claim === null;
    this.#stallMs = this.yields ? times.stallMs.withYielding : times.stallMs.withOthers;
  }

  get stalled(): boolean {
    return this.pace.waitedMs >= this.#stallMs;
  }

  get lost(): boolean {
    return this.evicted;
  }

  acquire(bytes: number): Promise<void> {
    return this.#budget.acquire(this, bytes);
  }
}

/** A body that `waits` is not refused while it may still get capacity. */
export interface NewBody {
  readonly claim: number | null;
  readonly waits: boolean;
  readonly fairnessKey?: string;
  readonly keyLimit?: number | null;
  readonly gone?: AbortSignal | undefined;
}

/** For the bodies that this process receives, by the rules of `in-flight-rules.ts`. */
export class MemoryInFlightBudget {
  readonly #capacity: number;
  readonly #times: BudgetTimes;
  readonly #complete = new Map<string, number>();
  #arriving: MemoryReservation[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(capacity: number, times: BudgetTimes = defaultBudgetTimes) {
    this.#capacity = capacity;
    this.#times = times;
  }

  get used(): number {
    let used = 0;
    for (const bytes of this.#complete.values()) used += bytes;
    return this.#arriving.reduce((sum, { held }) => sum + held, used);
  }

  get heldByKey(): ReadonlyMap<string, number> {
    return this.#sums().used;
  }

  enter(body: NewBody): MemoryReservation {
    return new MemoryReservation(this, body, this.#times);
  }

  async acquire(reservation: MemoryReservation, bytes: number): Promise<void> {
    if (reservation.evicted) throw new ReservationLostError();
    reservation.gone?.throwIfAborted();
    if (!this.#arriving.includes(reservation)) this.#arriving.push(reservation);
    const sums = this.#sums();
    if (mayAcquire(sums, reservation, bytes)) {
      reservation.held += bytes;
      return;
    }
    if (reservation.held === 0 && !reservation.waits && !mayWait(sums, reservation, bytes))
      throw new BudgetExhaustedError();
    if (reservation.held === 0 && this.#waitingOf(reservation.fairnessKey) >= maxWaitingPerKey)
      throw new BudgetExhaustedError();
    reservation.blockedSince = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    reservation.waiting = { bytes, resolve, reject };
    this.#timer ??= setInterval(() => this.#resolveWaits(), pollMs).unref();
    this.#resolveWaits();
    const giveUp = (): void => {
      stopWaiting(reservation);
      reject(reservation.gone?.reason);
    };
    reservation.gone?.addEventListener('abort', giveUp);
    try {
      await promise;
    } finally {
      reservation.gone?.removeEventListener('abort', giveUp);
    }
  }

  /** The complete body holds `bytes` until `release`. */
  keep(reservation: MemoryReservation, bytes: number): void {
    if (bytes > 0)
      this.#complete.set(reservation.fairnessKey, (this.#complete.get(reservation.fairnessKey) ?? 0) + bytes);
    this.leave(reservation);
  }

  /** For an incomplete body. */
  leave(reservation: MemoryReservation): void {
    this.#arriving = this.#arriving.filter((each) => each !== reservation);
    reservation.held = 0;
    this.#resolveWaits();
  }

  /** For a complete body. */
  release(bytes: number, fairnessKey = ''): void {
    const left = (this.#complete.get(fairnessKey) ?? 0) - bytes;
    if (left > 0) this.#complete.set(fairnessKey, left);
    else this.#complete.delete(fairnessKey);
    this.#resolveWaits();
  }

  #waitingOf(fairnessKey: string): number {
    return this.#arriving.filter((each) => each.held === 0 && each.waiting && each.fairnessKey === fairnessKey).length;
  }

  #sums(): BudgetSums<MemoryReservation> {
    return new BudgetSums({ capacity: this.#capacity, complete: this.#complete, arriving: this.#arriving });
  }

  /** Grants capacity to the oldest bodies first. Refuses bodies that have waited too long, and evicts bodies to free capacity. */
  #resolveWaits(): void {
    const now = performance.now();
    let sums = this.#sums();
    let staying = withoutEvicted(sums);
    for (const reservation of [...this.#arriving]) {
      const { waiting } = reservation;
      if (!waiting || reservation.blockedSince === null) continue;
      if (mayAcquire(sums, reservation, waiting.bytes)) {
        reservation.held += waiting.bytes;
        stopWaiting(reservation);
        waiting.resolve();
        sums = this.#sums();
        staying = withoutEvicted(sums);
        continue;
      }
      const limit = reservation.waits ? this.#times.waitMs : this.#times.yieldingWaitMs;
      if (now - reservation.blockedSince >= limit) {
        stopWaiting(reservation);
        waiting.reject(new BudgetExhaustedError(sums.isOverLimit(reservation, waiting.bytes)));
        continue;
      }
      const evictions = chooseEvictions(staying, reservation, waiting.bytes, now, this.#times.patience);
      if (evictions.length === 0) continue;
      for (const evicted of evictions) evict(evicted);
      staying = withoutEvicted(sums);
    }
    if (this.#arriving.some(({ waiting }) => waiting)) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function withoutEvicted(sums: BudgetSums<MemoryReservation>): BudgetSums<MemoryReservation> {
  const evicted = sums.budget.arriving.filter((each) => each.evicted);
  return evicted.length > 0 ? sums.without(evicted) : sums;
}

function stopWaiting(reservation: MemoryReservation): void {
  reservation.waiting = null;
  reservation.blockedSince = null;
}

function evict(reservation: MemoryReservation): void {
  const { waiting } = reservation;
  reservation.evicted = true;
  stopWaiting(reservation);
  waiting?.reject(new ReservationLostError());
  reservation.onLost(new ReservationLostError());
}

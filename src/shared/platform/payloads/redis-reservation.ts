import { setTimeout as sleep } from 'node:timers/promises';
import { type BudgetTimes, defaultBudgetTimes, maxWaitingPerKey } from './in-flight-rules.ts';
import { BudgetExhaustedError, type PayloadOptions, ReservationLostError } from './payload-store.ts';
import type { RedisBudgetTimes, RedisInFlightBudget } from './redis-in-flight-budget.ts';
import { type Reservation, StallTimer } from './reserved-arrival.ts';

export interface RedisPayloadTimes extends BudgetTimes, RedisBudgetTimes {
  /** The interval at which a process renews its bodies and repeats releases. */
  readonly renewMs: number;
  /** After this time, a lost connection cannot have undone a release. */
  readonly repeatMs: number;
}

export const defaultTimes: RedisPayloadTimes = {
  ...defaultBudgetTimes,
  lifeMs: 15_000,
  renewMs: 2_000,
  // Sentinels replace a server after 30 s of silence, unless configured otherwise.
  repeatMs: 60_000,
  jobLifeMs: 720_000,
};

/** No byte of these bodies has been read yet. */
export class WaitingBodies {
  readonly #counts = new Map<string, number>();

  /** Returns a function that ends the wait. Throws BudgetExhaustedError. */
  enter(fairnessKey: string): () => void {
    const count = this.#counts.get(fairnessKey) ?? 0;
    if (count >= maxWaitingPerKey) throw new BudgetExhaustedError();
    this.#counts.set(fairnessKey, count + 1);
    return () => {
      const left = (this.#counts.get(fairnessKey) ?? 1) - 1;
      if (left > 0) this.#counts.set(fairnessKey, left);
      else this.#counts.delete(fairnessKey);
    };
  }
}

export class RedisReservation implements Reservation {
  readonly key: string;
  readonly claim: number | null;
  readonly waits: boolean;
  readonly fairnessKey: string;
  readonly keyLimit: number | null;
  readonly budget: RedisInFlightBudget;
  readonly pace = new StallTimer();
  readonly #waiting: WaitingBodies;
  readonly #gone: AbortSignal | undefined;
  readonly #times: RedisPayloadTimes;
  isInside = false;
  isComplete = false;
  /** Between the end of the body and its completion, its reservation must not be renewed like that of an arriving body. */
  isEnding = false;
  isBeingRenewed = false;
  lost = false;
  chunks = 0;
  bytes = 0;
  onLost: (error: Error) => void = () => {};

  constructor(
    key: string,
    { budget, waiting }: { readonly budget: RedisInFlightBudget; readonly waiting: WaitingBodies },
    options: PayloadOptions,
    times: RedisPayloadTimes,
  ) {
    this.key = key;
    this.budget = budget;
    this.#waiting = waiting;
    this.claim = options.declaredBytes;
    this.waits = options.budget === 'imports';
    this.fairnessKey = options.fairnessKey ?? '';
    this.keyLimit = options.keyLimit ?? null;
    this.#gone = options.gone;
    this.#times = times;
  }

  async acquire(bytes: number): Promise<void> {
    const { waitMs, yieldingWaitMs } = this.#times;
    const deadline = performance.now() + (this.waits ? waitMs : yieldingWaitMs);
    let endWait = this.isInside ? (): void => {} : null;
    try {
      for (;;) {
        this.#gone?.throwIfAborted();
        if (this.lost) throw new ReservationLostError();
        const { result, pauseMs } = await this.budget.acquire(this, bytes, this.isInside);
        if (result === 'lost') throw new ReservationLostError();
        if (result === 'refused') throw new BudgetExhaustedError();
        // From here on, a waiting body has its position in the queue.
        this.isInside = true;
        if (result === 'acquired') return;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) throw new BudgetExhaustedError(result === 'key limit');
        endWait ??= this.#waiting.enter(this.fairnessKey);
        await sleep(Math.min(pauseMs, Math.max(leftMs, 1)));
      }
    } finally {
      endWait?.();
    }
  }

  get stalled(): boolean {
    const { stallMs } = this.#times;
    return this.pace.waitedMs >= (this.waits && this.claim !== null ? stallMs.withOthers : stallMs.withYielding);
  }

  lose(): void {
    this.lost = true;
    this.onLost(new ReservationLostError());
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';

/** No connection became free in time. Nothing was sent. */
export class AcquireTimeoutError extends Error {
  override readonly name = 'AcquireTimeoutError';

  constructor(limitMs: number) {
    super(`no free connection within ${limitMs} ms`);
  }
}

/** How long the share of other work stays small after priority work, which usually has more statements. */
const pauseMs = 100;
/** A caller is overtaken or throttled no longer than this. */
const patienceMs = 500;

const goesFirst = new AsyncLocalStorage<boolean>();

/** Statements of `work` get connections before others. For the few short calls on which other calls depend. */
export function runFirst<T>(work: () => T): T {
  return goesFirst.run(true, work);
}

/** `work` has no priority, even if its caller has. */
export function runInOrder<T>(work: () => T): T {
  return goesFirst.run(false, work);
}

export function isFirst(): boolean {
  return goesFirst.getStore() === true;
}

interface Waiting {
  readonly enter: () => void;
  /** By `performance.now()`. */
  readonly since: number;
}

/**
 * Admits as many callers as the pool has connections. The others wait in order, up to a time limit, which the pool itself lacks. Priority
 * work (`runFirst`) comes first. Meanwhile, other work uses only half of the connections: with all of them, it would keep Postgres busy
 * during the statements of priority work. A caller that has waited long is next in any case.
 */
export class ConnectionGate {
  readonly #size: number;
  readonly #first = new Set<Waiting>();
  readonly #others = new Set<Waiting>();
  #free: number;
  #othersInside = 0;
  #lastFirstAt = Number.NEGATIVE_INFINITY;
  #lastServedAt = Number.NEGATIVE_INFINITY;
  #recheck: NodeJS.Timeout | null = null;

  constructor(poolSize: number) {
    this.#size = poolSize;
    this.#free = poolSize;
  }

  get waiting(): number {
    return this.#first.size + this.#others.size;
  }

  /** When a caller last finished without an error, by `performance.now()`. */
  get lastServedAt(): number {
    return this.#lastServedAt;
  }

  /** Also true for a moment after priority work. */
  get servesFirst(): boolean {
    return performance.now() - this.#lastFirstAt < pauseMs;
  }

  /** Throws AcquireTimeoutError if no connection becomes free within `limitMs`. */
  async run<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    const first = isFirst();
    if (first) this.#lastFirstAt = performance.now();
    const queue = first ? this.#first : this.#others;
    // A new caller never overtakes a waiting caller of its queue.
    if (queue.size === 0 && this.#free > 0 && (first || this.#hasCapacity())) this.#enter(first);
    else await this.#wait(limitMs, queue);
    try {
      const result = await work();
      this.#lastServedAt = performance.now();
      return result;
    } finally {
      this.#free += 1;
      if (first) this.#lastFirstAt = performance.now();
      else this.#othersInside -= 1;
      this.#admit();
    }
  }

  async #wait(limitMs: number, queue: Set<Waiting>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { enter: resolve, since: performance.now() };
    queue.add(waiting);
    this.#planRecheck();
    const timer = setTimeout(() => {
      queue.delete(waiting);
      reject(new AcquireTimeoutError(limitMs));
    }, limitMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #enter(first: boolean): void {
    this.#free -= 1;
    if (!first) this.#othersInside += 1;
  }

  /** Free connections are passed directly, so that a new caller cannot overtake the waiting ones. */
  #admit(): void {
    while (this.#free > 0) {
      const [first] = this.#first;
      const [other] = this.#others;
      const isOthersTurn = other !== undefined && performance.now() - other.since >= patienceMs;
      if (first && !isOthersTurn) {
        this.#first.delete(first);
        this.#enter(true);
        first.enter();
      } else if (other && (isOthersTurn || this.#hasCapacity())) {
        this.#others.delete(other);
        this.#enter(false);
        other.enter();
      } else break;
    }
    this.#planRecheck();
  }

  #hasCapacity(): boolean {
    return !this.servesFirst || this.#othersInside < Math.max(Math.floor(this.#size / 2), 1);
  }

  /** Throttled callers must not depend on another call while connections are free. */
  #planRecheck(): void {
    if (this.#recheck || this.#free === 0 || this.#others.size === 0) return;
    this.#recheck = setTimeout(() => {
      this.#recheck = null;
      this.#admit();
    }, pauseMs);
  }
}

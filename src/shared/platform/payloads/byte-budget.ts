import { UnavailableError } from '../errors/errors.ts';

interface Waiting {
  readonly bytes: number;
  readonly fairnessKey: string;
  readonly admit: () => void;
}

/**
 * Requests that do not fit wait. The key that uses the least is served first; within a key, and among equal keys, the order is that of
 * arrival. A request above the limit is admitted while nothing else is in use.
 */
export class ByteBudget {
  readonly #capacity: number;
  readonly #waiting: Waiting[] = [];
  readonly #usedByKey = new Map<string, number>();
  #used = 0;
  #peak = 0;

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes;
  }

  get used(): number {
    return this.#used;
  }

  get peak(): number {
    return this.#peak;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * A caller that already holds bytes must use `tryGrow` instead, because two callers could wait for each other. Rejects with
   * UnavailableError after `limitMs`; null for no limit.
   */
  async acquire(bytes: number, limitMs: number | null, fairnessKey = ''): Promise<void> {
    if (bytes === 0) return;
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#add(bytes, fairnessKey);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { bytes, fairnessKey, admit: resolve };
    this.#waiting.push(waiting);
    // This key may use less than the keys of all other waiters.
    this.#admit();
    const giveUp = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      reject(new UnavailableError('The server has no memory left for this request; please retry'));
      // The next waiters may need less.
      this.#admit();
    };
    const timer = limitMs === null ? undefined : setTimeout(giveUp, limitMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The caller already holds `held` bytes. Never waits. */
  tryGrow(held: number, bytes: number, fairnessKey = ''): boolean {
    if (this.#used > held && this.#used + bytes > this.#capacity) return false;
    this.#add(bytes, fairnessKey);
    return true;
  }

  release(bytes: number, fairnessKey = ''): void {
    this.#add(-bytes, fairnessKey);
    this.#admit();
  }

  #admit(): void {
    for (;;) {
      const next = this.#next();
      if (!next || !this.#fits(next.bytes)) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#add(next.bytes, next.fairnessKey);
      next.admit();
    }
  }

  /** The next waiter may not fit yet: if others overtook it, large requests would wait forever. */
  #next(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const waiting of this.#waiting) {
      if (!next || this.#usedBy(waiting.fairnessKey) < this.#usedBy(next.fairnessKey)) next = waiting;
    }
    return next;
  }

  #usedBy(fairnessKey: string): number {
    return this.#usedByKey.get(fairnessKey) ?? 0;
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#capacity;
  }

  #add(bytes: number, fairnessKey: string): void {
    this.#used += bytes;
    this.#peak = Math.max(this.#peak, this.#used);
    const used = this.#usedBy(fairnessKey) + bytes;
    if (used > 0) this.#usedByKey.set(fairnessKey, used);
    else this.#usedByKey.delete(fairnessKey);
  }
}

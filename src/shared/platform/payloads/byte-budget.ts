import { UnavailableError } from '../errors/errors.ts';

interface Waiting {
  readonly bytes: number;
  readonly share: string;
  readonly admit: () => void;
}

/**
 * Counts bytes against a limit. Who finds no room waits: the share that has least in hand is next, and within a share, or when two
 * have as much, whoever came first. More than the limit goes alone.
 */
export class ByteBudget {
  readonly #capacity: number;
  readonly #waiting: Waiting[] = [];
  readonly #shares = new Map<string, number>();
  #used = 0;
  #peak = 0;

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes;
  }

  get used(): number {
    return this.#used;
  }

  /** The most that was in use at any time. */
  get peak(): number {
    return this.#peak;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Takes `bytes` for a share, e.g. an organization, in its turn; none are had at once. Who holds bytes already must not ask for more in this way: such
   * could wait for each other. Rejects with UnavailableError when the wait took `limitMs`; null is no limit.
   */
  async take(bytes: number, limitMs: number | null, share = ''): Promise<void> {
    if (bytes === 0) return;
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#add(bytes, share);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { bytes, share, admit: resolve };
    this.#waiting.push(waiting);
    // Its share may have less in hand than all that wait.
    this.#admit();
    const giveUp = (): void => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      reject(new UnavailableError('The server has no memory left for this request; please retry'));
      // The next ones may need less.
      this.#admit();
    };
    const timer = limitMs === null ? undefined : setTimeout(giveUp, limitMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes `bytes` on top of the `held` that the caller has, unless there is no room: false then. Never waits. */
  tryGrow(held: number, bytes: number, share = ''): boolean {
    if (this.#used > held && this.#used + bytes > this.#capacity) return false;
    this.#add(bytes, share);
    return true;
  }

  give(bytes: number, share = ''): void {
    this.#add(-bytes, share);
    this.#admit();
  }

  #admit(): void {
    for (;;) {
      const next = this.#next();
      if (!next || !this.#fits(next.bytes)) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#add(next.bytes, next.share);
      next.admit();
    }
  }

  /** Who is next, whether there is room or not: no other passes by, or large ones would wait for ever. */
  #next(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const waiting of this.#waiting) {
      if (!next || this.#usedBy(waiting.share) < this.#usedBy(next.share)) next = waiting;
    }
    return next;
  }

  #usedBy(share: string): number {
    return this.#shares.get(share) ?? 0;
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#capacity;
  }

  #add(bytes: number, share: string): void {
    this.#used += bytes;
    this.#peak = Math.max(this.#peak, this.#used);
    const used = this.#usedBy(share) + bytes;
    if (used > 0) this.#shares.set(share, used);
    else this.#shares.delete(share);
  }
}

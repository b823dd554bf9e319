/** There was no free connection in time; nothing was sent. */
export class AcquireTimeoutError extends Error {
  override readonly name = 'AcquireTimeoutError';

  constructor(limitMs: number) {
    super(`no free connection within ${limitMs} ms`);
  }
}

interface Waiting {
  readonly enter: () => void;
}

/** Lets as many in as a pool has connections; the others wait in order, and not for ever. The pool itself knows no limit of waiting. */
export class ConnectionGate {
  readonly #waiting = new Set<Waiting>();
  #free: number;

  constructor(places: number) {
    this.#free = places;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs `work` as soon as there is a place. Throws AcquireTimeoutError when there is none within `limitMs`. */
  async run<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(limitMs);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #wait(limitMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { enter: resolve };
    this.#waiting.add(waiting);
    const timer = setTimeout(() => {
      this.#waiting.delete(waiting);
      reject(new AcquireTimeoutError(limitMs));
    }, limitMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The place goes from hand to hand, so that a newcomer cannot take it before those that wait. */
  #leave(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next.enter();
  }
}

/** No connection became free in time. Nothing was sent. */
export class AcquireTimeoutError extends Error {
  override readonly name = 'AcquireTimeoutError';

  constructor(limitMs: number) {
    super(`no free connection within ${limitMs} ms`);
  }
}

interface Waiting {
  readonly enter: () => void;
}

/**
 * Admits as many callers as the pool has connections; the others wait in order, up to a time limit, which the pool
 * itself lacks.
 */
export class ConnectionGate {
  readonly #waiting = new Set<Waiting>();
  #free: number;

  constructor(poolSize: number) {
    this.#free = poolSize;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs `work` as soon as a connection is free. Throws AcquireTimeoutError if none is within `limitMs`. */
  async run<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(limitMs);
    try {
      return await work();
    } finally {
      this.#release();
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

  /** Passes the connection directly to the next waiting caller, so that a newcomer cannot overtake it. */
  #release(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next.enter();
  }
}

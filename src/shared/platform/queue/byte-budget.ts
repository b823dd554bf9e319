import { UnavailableError } from '../errors/errors.ts';

/** Counts bytes in flight against a limit; who must not be refused waits in order of arrival. */
export class ByteBudget {
  readonly #capacity: number;
  readonly #waiting: { bytes: number; admit: () => void }[] = [];
  #used = 0;

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes;
  }

  get used(): number {
    return this.#used;
  }

  /**
   * Takes `bytes`; more than the capacity only when nothing else is in flight. When there is no room it waits (`wait`), or
   * rejects with UnavailableError, which the CLI answers by repeating the call.
   */
  async take(bytes: number, options: { wait: boolean }): Promise<void> {
    if (this.#waiting.length === 0 && (this.#used === 0 || this.#used + bytes <= this.#capacity)) {
      this.#used += bytes;
      return;
    }
    if (!options.wait) {
      throw new UnavailableError('The server holds as many bodies as it may; please repeat the call', {
        retryAfterSeconds: 1,
      });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ bytes, admit: resolve });
    await promise;
  }

  /** Counts bytes that are there already, room or not. */
  add(bytes: number): void {
    this.#used += bytes;
  }

  give(bytes: number): void {
    this.#used -= bytes;
    for (;;) {
      const next = this.#waiting[0];
      if (!next || (this.#used > 0 && this.#used + next.bytes > this.#capacity)) return;
      this.#waiting.shift();
      this.#used += next.bytes;
      next.admit();
    }
  }
}

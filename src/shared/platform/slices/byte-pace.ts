/** Keeps a rate of bytes. What was not used is not saved up. */
export class BytePace {
  readonly #bytesPerSecond: number;
  /** When what was spent is paid for, in ms of performance.now. */
  #readyAt = 0;

  /** With 0 bytes per second, never. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  get isReady(): boolean {
    return this.waitMs === 0;
  }

  /** Time until then. */
  get waitMs(): number {
    if (this.#bytesPerSecond === 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#readyAt - performance.now());
  }

  spend(bytes: number): void {
    this.#readyAt = Math.max(this.#readyAt, performance.now()) + (1000 * bytes) / this.#bytesPerSecond;
  }
}

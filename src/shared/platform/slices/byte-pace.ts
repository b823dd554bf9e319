/** Unused bytes are not saved up. */
export class BytePace {
  readonly #bytesPerSecond: number;
  /** When the spent bytes are paid for, in ms of performance.now. */
  #readyAt = 0;

  /** With 0 bytes per second, the pace never becomes ready. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  get isReady(): boolean {
    return this.waitMs === 0;
  }

  get waitMs(): number {
    if (this.#bytesPerSecond === 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#readyAt - performance.now());
  }

  spend(bytes: number): void {
    this.#readyAt = Math.max(this.#readyAt, performance.now()) + (1000 * bytes) / this.#bytesPerSecond;
  }
}

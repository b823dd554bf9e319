import type { Logger } from './logger.ts';

/** At most one line per kind and interval, with the number of those that were left out since: for what a stranger can cause. */
export class LimitedWarning {
  readonly #logger: Logger;
  readonly #everyMs: number;
  readonly #kinds = new Map<string, { since: number; leftOut: number }>();

  constructor(logger: Logger, everyMs = 10_000) {
    this.#logger = logger;
    this.#everyMs = everyMs;
  }

  /** `kind` must have few values. */
  warn(kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    const now = performance.now();
    const before = this.#kinds.get(kind);
    if (before && now - before.since < this.#everyMs) {
      before.leftOut++;
      return;
    }
    this.#kinds.set(kind, { since: now, leftOut: 0 });
    this.#logger.warn({ ...fields, ...(before?.leftOut ? { leftOut: before.leftOut } : {}) }, message);
  }
}

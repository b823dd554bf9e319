import type { Logger } from './logger.ts';

const everyMs = 10_000;

/** Logs at most one line per kind and interval, with the number of suppressed ones. For warnings that any client can cause. */
export class LimitedWarning {
  readonly #logger: Logger;
  readonly #kinds = new Map<string, { since: number; leftOut: number }>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `kind` must have low cardinality. */
  warn(kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    const now = performance.now();
    const last = this.#kinds.get(kind);
    if (last && now - last.since < everyMs) {
      last.leftOut++;
      return;
    }
    this.#kinds.set(kind, { since: now, leftOut: 0 });
    this.#logger.warn({ ...fields, ...(last?.leftOut ? { leftOut: last.leftOut } : {}) }, message);
  }
}

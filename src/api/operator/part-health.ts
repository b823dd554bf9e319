import { cutText } from '../../shared/platform/text/cut-text.ts';

export interface PartHealth {
  readonly isUp: boolean;
  /** In ms; null: there was no answer. */
  readonly latencyMs: number | null;
  /** Since the start of this process. */
  readonly lastFailure: { readonly at: string; readonly message: string } | null;
}

const maxMessage = 200;

/** Concurrent callers share a result. */
export class PartProbe {
  readonly #check: (limitMs: number) => Promise<void>;
  readonly #limitMs: number;
  #lastFailure: PartHealth['lastFailure'] = null;
  #running: Promise<PartHealth> | null = null;

  constructor(check: (limitMs: number) => Promise<void>, limitMs: number) {
    this.#check = check;
    this.#limitMs = limitMs;
  }

  probe(): Promise<PartHealth> {
    this.#running ??= this.#probe().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #probe(): Promise<PartHealth> {
    const startedAt = performance.now();
    try {
      await this.#check(this.#limitMs);
      return { isUp: true, latencyMs: performance.now() - startedAt, lastFailure: this.#lastFailure };
    } catch (error) {
      const message = error instanceof Error ? cutText(error.message, maxMessage) : 'no answer';
      this.#lastFailure = { at: new Date().toISOString(), message };
      return { isUp: false, latencyMs: null, lastFailure: this.#lastFailure };
    }
  }
}

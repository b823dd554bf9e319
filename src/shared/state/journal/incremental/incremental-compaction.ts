import { setTimeout as sleep } from 'node:timers/promises';
import { outsideCalls } from '../../../platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../platform/logger/logger.ts';

/** Further requests are forgotten: the compaction at the end applies all entries anyway. */
const maxWaiting = 10_000;

/** Several times the CPU time of a compaction. */
const maxPauseMs = 10;

/**
 * Applies entries to kept replays in the background, so that little is left to do when an update is completed. Takes one update at a time,
 * each once however often it was requested meanwhile, and pauses after each: incremental compaction must not delay calls. Stores nothing,
 * so that a crash loses nothing.
 */
export class IncrementalCompaction {
  readonly #advance: (updateId: string) => Promise<void>;
  readonly #logger: Logger;
  readonly #waiting = new Set<string>();
  readonly #closed = new AbortController();
  #running: Promise<void> | null = null;

  constructor(advance: (updateId: string) => Promise<void>, logger: Logger) {
    this.#advance = advance;
    this.#logger = logger;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Returns at once and never fails. */
  request(updateId: string): void {
    if (this.#closed.signal.aborted || this.#waiting.size >= maxWaiting) return;
    this.#waiting.add(updateId);
    this.#running ??= outsideCalls(() => this.#run());
  }

  /** Call this for an update that has ended. */
  forget(updateId: string): void {
    this.#waiting.delete(updateId);
  }

  /** Waits for the running compaction. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#waiting.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    // The requests of one tick are handled together.
    await Promise.resolve();
    for (const updateId of this.#waiting) {
      this.#waiting.delete(updateId);
      const began = performance.now();
      try {
        await this.#advance(updateId);
      } catch (error) {
        this.#logger.debug({ updateId, err: error }, 'journal not compacted incrementally');
      }
      const { signal } = this.#closed;
      if (signal.aborted) return;
      // On a busy machine, most of the elapsed time is waiting, which costs no CPU time.
      const pauseMs = Math.min(performance.now() - began, maxPauseMs);
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
    // Reset in the tick in which the queue became empty, so that a later request starts the next run.
    this.#running = null;
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { outsideCalls } from '../../../platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../platform/logger/logger.ts';

/** Requests beyond this number are forgotten: the compaction at the end applies all entries anyway. */
const maxWaiting = 10_000;

/** The longest pause between two compactions, in ms: several times the CPU time of one. */
const maxPauseMs = 10;

/**
 * Applies the entries of running updates to their kept replays in the background, so that little is left to do when an update is
 * completed. Takes one update at a time, each once however often it was requested meanwhile, and pauses after each: incremental
 * compaction must not delay calls. Stores nothing, so that a crash loses nothing.
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

  /** Number of updates in the queue. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Requests that the update's replay catch up with its journal. Returns at once and never fails. */
  request(updateId: string): void {
    if (this.#closed.signal.aborted || this.#waiting.size >= maxWaiting) return;
    this.#waiting.add(updateId);
    this.#running ??= outsideCalls(() => this.#run());
  }

  /** Drops the request of an update that has ended. */
  forget(updateId: string): void {
    this.#waiting.delete(updateId);
  }

  /** Accepts no more requests and waits for the running one. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#waiting.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Runs after the current tick, so that the requests of one tick are handled together.
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

import { runFirst } from '../../../shared/platform/db/connection-gate.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { UpdateQueueRepository } from '../../../shared/updates/update-queue-repository.ts';

/** A process with waiting calls is renewed this often. */
const renewMs = 400;
/** Time without a renewal after which the calls of this process no longer block later ones, in seconds. */
export const aliveSeconds = 1.6;

/**
 * Tells the database that this process is alive while calls wait in it. It has its own timer: if other work delayed it, later calls of
 * other processes would overtake.
 */
export class ProcessRenewal {
  readonly #entries: UpdateQueueRepository;
  readonly #processId: string;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Begins when `#running` has ended. */
  #next: Promise<void> | undefined;
  /** When the last successful renewal began, by `performance.now()`. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #isRecorded = false;

  constructor(entries: UpdateQueueRepository, processId: string, logger: Logger) {
    this.#entries = entries;
    this.#processId = processId;
    this.#logger = logger;
  }

  /**
   * Resolves when the database knows that this process is alive. All calls about to wait need the same row: while the timer runs, a recent
   * renewal is enough. A call that finds a running renewal shares the next one, because the running one may have begun long ago.
   */
  async renew(): Promise<void> {
    if (this.#timer && performance.now() - this.#renewedAt < renewMs) return;
    if (this.#running === undefined) return this.#begin();
    const begin = (): Promise<void> => {
      this.#next = undefined;
      return this.#running ?? this.#begin();
    };
    this.#next ??= this.#running.then(begin, begin);
    return this.#next;
  }

  start(): void {
    this.#timer ??= outsideCalls(() => setInterval(() => this.#tick(), renewMs).unref());
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async close(): Promise<void> {
    this.stop();
    while (this.#running !== undefined) await this.#running.catch(() => {});
    if (this.#isRecorded) await this.#entries.removeProcess(this.#processId).catch(() => {});
  }

  #tick(): void {
    if (this.#running !== undefined) return;
    this.#begin().catch((error: unknown) =>
      this.#logger.debug({ err: error }, 'update queue: the process could not be renewed'),
    );
  }

  #begin(): Promise<void> {
    const began = performance.now();
    this.#isRecorded = true;
    this.#running = outsideCalls(() => runFirst(() => this.#entries.renewProcess(this.#processId, aliveSeconds)))
      .then(() => {
        this.#renewedAt = began;
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }
}

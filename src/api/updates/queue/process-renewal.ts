import { runFirst } from '../../../shared/platform/db/connection-gate.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import type { UpdateQueueRepository } from '../../../shared/updates/update-queue-repository.ts';

/** How often a process with waiting calls is renewed, in ms. */
const renewMs = 400;
/** After this time without renewal, the calls of this process no longer block later ones, in seconds. */
export const aliveSeconds = 1.6;

/**
 * Tells the database that this process lives, while calls wait in it. It has a timer of its own: nothing else that the queue does may
 * delay it, or later calls of other processes would overtake.
 */
export class ProcessRenewal {
  readonly #entries: UpdateQueueRepository;
  readonly #processId: string;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isRecorded = false;

  constructor(entries: UpdateQueueRepository, processId: string, logger: Logger) {
    this.#entries = entries;
    this.#processId = processId;
    this.#logger = logger;
  }

  async renew(): Promise<void> {
    this.#isRecorded = true;
    await this.#entries.renewProcess(this.#processId, aliveSeconds);
  }

  start(): void {
    this.#timer ??= outsideCalls(() => setInterval(() => runFirst(() => this.#begin()), renewMs).unref());
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Stops, and removes the process from the database. */
  async close(): Promise<void> {
    this.stop();
    await this.#running;
    if (this.#isRecorded) await this.#entries.removeProcess(this.#processId).catch(() => {});
  }

  #begin(): void {
    this.#running ??= this.renew()
      .catch((error: unknown) => this.#logger.debug({ err: error }, 'update queue: the process could not be renewed'))
      .finally(() => {
        this.#running = undefined;
      });
  }
}

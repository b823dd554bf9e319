import { randomUUID } from 'node:crypto';
import type { Logger } from '../platform/logger/logger.ts';
import type { CompactionRepository } from './compaction-repository.ts';

/** How long a claim holds without being renewed: a process that was killed keeps others waiting for no longer. */
const claimSeconds = 15;

/** Lets one process at a time compact a journal, however many want to. */
export class CompactionClaims {
  readonly #compactions: CompactionRepository;
  readonly #logger: Logger;

  constructor(compactions: CompactionRepository, logger: Logger) {
    this.#compactions = compactions;
    this.#logger = logger;
  }

  /**
   * Does `work` while this caller alone may compact the journal; false, without doing it, when another may at present. `work`
   * returns whether it has committed a compaction, which ends the claim.
   */
  async run(updateId: string, work: () => Promise<boolean>): Promise<boolean> {
    const claim = randomUUID();
    if (!(await this.#compactions.claim(updateId, claim, claimSeconds))) return false;
    const renewal = setInterval(() => {
      // Lost claims do no harm: what was compacted without one is not committed, or is as good.
      this.#compactions.renewClaim(updateId, claim, claimSeconds).catch((error: unknown) => {
        this.#logger.warn({ updateId, err: error }, 'claim on a journal could not be renewed');
      });
    }, claimSeconds * 300);
    renewal.unref();
    let committed = false;
    try {
      committed = await work();
      return true;
    } finally {
      clearInterval(renewal);
      if (!committed) await this.#release(updateId, claim);
    }
  }

  async #release(updateId: string, claim: string): Promise<void> {
    try {
      await this.#compactions.releaseClaim(updateId, claim);
    } catch (error) {
      this.#logger.warn({ updateId, err: error }, 'claim on a compaction left to expire');
    }
  }
}

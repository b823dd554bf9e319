import { randomUUID } from 'node:crypto';
import type { Logger } from '../platform/logger/logger.ts';
import type { FoldRepository } from './fold-repository.ts';

/** How long a claim holds without being renewed: a process that was killed keeps others waiting for no longer. */
const claimSeconds = 15;

/** Sees to it that a journal is folded once at a time, whatever processes want it folded. */
export class FoldClaims {
  readonly #folds: FoldRepository;
  readonly #logger: Logger;

  constructor(folds: FoldRepository, logger: Logger) {
    this.#folds = folds;
    this.#logger = logger;
  }

  /**
   * Does `work` while this caller alone may fold the journal; false, without doing it, when another may at present. `work` says
   * whether it has committed a fold, which ends the claim.
   */
  async run(updateId: string, work: () => Promise<boolean>): Promise<boolean> {
    const claim = randomUUID();
    if (!(await this.#folds.claim(updateId, claim, claimSeconds))) return false;
    const renewal = setInterval(() => {
      // Lost claims do no harm: what was folded without one is not committed, or is as good.
      this.#folds.renewClaim(updateId, claim, claimSeconds).catch((error: unknown) => {
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
      await this.#folds.releaseClaim(updateId, claim);
    } catch (error) {
      this.#logger.warn({ updateId, err: error }, 'claim on a journal could not be released; it will expire');
    }
  }
}

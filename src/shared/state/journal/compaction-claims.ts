import { randomUUID } from 'node:crypto';
import type { Logger } from '../../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../../platform/read-only/read-only-mode.ts';
import type { ClaimedUpdate, CompactionRepository } from './compaction-repository.ts';

/** The longest time that a killed process blocks others. */
const claimSeconds = 15;

/** One process at a time compacts a journal. */
export class CompactionClaims {
  readonly #compactions: CompactionRepository;
  readonly #readOnly: ReadOnlyMode;
  readonly #logger: Logger;

  constructor(parts: {
    readonly compactions: CompactionRepository;
    readonly readOnly: ReadOnlyMode;
    readonly logger: Logger;
  }) {
    this.#compactions = parts.compactions;
    this.#readOnly = parts.readOnly;
    this.#logger = parts.logger;
  }

  /**
   * Returns false without running `work` if another process holds the claim, or if there is nothing to claim. `work` returns whether it
   * committed something that ended the claim. `deletedToo` includes deleted stacks that can be restored. For `withPage`, see
   * CompactionRepository. Throws ReadOnlyError once another site has taken over, because a read can ask for a compaction.
   */
  async run(
    updateId: string,
    work: (claimed: ClaimedUpdate) => Promise<boolean>,
    { deletedToo = false, withPage = false }: { readonly deletedToo?: boolean; readonly withPage?: boolean } = {},
  ): Promise<boolean> {
    this.#readOnly.assertNotFenced();
    const claim = randomUUID();
    const claimed = await this.#compactions.claim(updateId, claim, { seconds: claimSeconds, deletedToo, withPage });
    if (!claimed) return false;
    const renewal = setInterval(() => {
      // Losing the claim is harmless: a compaction done without it either fails to commit or has the same result.
      this.#compactions.renewClaim(updateId, claim, claimSeconds).catch((error: unknown) => {
        this.#logger.warn({ updateId, err: error }, 'claim on a journal could not be renewed');
      });
    }, claimSeconds * 300);
    renewal.unref();
    let committed = false;
    try {
      committed = await work(claimed);
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
      this.#logger.warn({ updateId, err: error }, 'claim on a journal could not be released; it will expire');
    }
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../../../shared/context.ts';
import { proofPauseMs, proveInstallation } from '../../../shared/platform/site/installation-proof.ts';
import { createSiteRepository } from '../../../shared/platform/site/site-repository.ts';

/** Lets `holdfast doctor` see through the public URL: which installation answers, and whether a proxy holds responses back. */
export class ProofStream {
  readonly #db: AppContext['db'];
  #reading: Promise<string> | null = null;

  constructor({ db }: Pick<AppContext, 'db'>) {
    this.#db = db;
  }

  /** The proof of this installation for the nonce, and after a pause a second event. */
  async *events(nonce: string): AsyncGenerator<string> {
    yield `data: ${proveInstallation(await this.#installation(), nonce)}\n\n`;
    await sleep(proofPauseMs);
    yield 'data: end\n\n';
  }

  /** One statement for all callers at a time. */
  #installation(): Promise<string> {
    this.#reading ??= createSiteRepository(this.#db)
      .read()
      .then(({ installation }) => installation)
      .finally(() => {
        this.#reading = null;
      });
    return this.#reading;
  }
}

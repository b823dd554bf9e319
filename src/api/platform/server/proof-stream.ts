import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../../../shared/context.ts';
import { proofPauseMs, proveInstallation } from '../../../shared/platform/site/installation-proof.ts';
import { createSiteRepository } from '../../../shared/platform/site/site-repository.ts';

/** Shows `holdfast doctor` which installation answers at the public URL, and whether a proxy holds responses back. */
export class ProofStream {
  readonly #db: AppContext['db'];
  #reading: Promise<string> | null = null;

  constructor({ db }: Pick<AppContext, 'db'>) {
    this.#db = db;
  }

  async *events(nonce: string): AsyncGenerator<string> {
    yield `data: ${proveInstallation(await this.#installation(), nonce)}\n\n`;
    await sleep(proofPauseMs);
    yield 'data: end\n\n';
  }

  /** Concurrent callers share one statement. */
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

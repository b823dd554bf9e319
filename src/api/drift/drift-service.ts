import { createDriftRepository, type DriftRunRow } from '../../shared/drift/drift-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { ApiContext } from '../api-context.ts';

export type { DriftRunRow };

/** What runs have found out about drift of stacks. */
export class DriftService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Throws NotFoundError. */
  async status(ref: StackRef) {
    const status = await createDriftRepository(this.#db).readStatus(ref);
    if (!status) throw stackNotFound(ref);
    return status;
  }

  /** Runs, newest first, and how many there are. */
  async list(
    ref: StackRef,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly runs: readonly DriftRunRow[]; readonly total: number }> {
    const drift = createDriftRepository(this.#db);
    return { runs: await drift.list(ref, page), total: await drift.count(ref) };
  }
}

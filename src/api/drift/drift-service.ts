import { createDriftRepository, type DriftRunRow } from '../../shared/drift/drift-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { ApiContext } from '../platform/api-context.ts';

export type { DriftRunRow };

/** Runs find the drift. */
export class DriftService {
  readonly #db: ApiContext['db'];
  readonly #stacks: ApiContext['stacks'];

  constructor({ db, stacks }: Pick<ApiContext, 'db' | 'stacks'>) {
    this.#db = db;
    this.#stacks = stacks;
  }

  async status(ref: StackRef) {
    const status = await createDriftRepository(this.#db).readStatus(ref);
    if (!status) throw stackNotFound(ref);
    return status;
  }

  /** The newest runs come first. */
  async list(
    ref: StackRef,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly runs: readonly DriftRunRow[]; readonly total: number }> {
    if (!(await this.#stacks.find(ref))) throw stackNotFound(ref);
    const drift = createDriftRepository(this.#db);
    return { runs: await drift.list(ref, page), total: await drift.count(ref) };
  }
}

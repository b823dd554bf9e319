import { randomUUID } from 'node:crypto';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import type { DocumentStore } from '../../shared/state/checkpoints/document-store.ts';
import { copyVersion } from '../../shared/state/copy-version.ts';
import { assertUnchanged, StackChangedError } from '../../shared/state/edits/state-edits.ts';
import { createCompactionRepository } from '../../shared/state/journal/compaction-repository.ts';
import { recordEdit } from '../../shared/state/record-edit.ts';
import type { StateReader } from '../../shared/state/state-reader.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';

export class VersionRestorer {
  readonly #db: Database;
  readonly #documents: DocumentStore;
  readonly #states: StateReader;

  constructor(parts: { db: Database; documents: DocumentStore; states: StateReader }) {
    this.#db = parts.db;
    this.#documents = parts.documents;
    this.#states = parts.states;
  }

  /**
   * Stores the state of `stackVersion` as a new version, recorded as an import, and accepts the current journal faults of the stack. All of
   * it, and the additions of `record`, are in one transaction. Throws NotFoundError, StackBusyError, StackChangedError, JournalFaultError
   * and UnavailableError.
   */
  async restore(
    stackId: string,
    stackVersion: number,
    record: (tx: Queryable, newVersion: number) => Promise<void>,
  ): Promise<number> {
    const stacks = createStackRepository(this.#db);
    const faults = await createCompactionRepository(this.#db).findFaults(stackId);
    const found = await stacks.findById(stackId);
    if (!found) throw new NotFoundError('The stack has been deleted in the meantime');
    if (found.activeUpdateId !== null) throw new StackBusyError();
    const parts = { documents: this.#documents, states: this.#states, stacks };
    const state = await copyVersion(parts, found, stackVersion);
    return this.#db.inTransaction(async (tx) => {
      const stack = await createStackRepository(tx).lockById(stackId);
      if (!stack) throw new NotFoundError('The stack has been deleted in the meantime');
      // Updates may have run since the stack was read.
      assertUnchanged(stack, found);
      if (formatStackRef(stack) !== formatStackRef(found)) throw new StackChangedError();
      const compactions = createCompactionRepository(tx);
      for (const fault of faults) await compactions.acceptFault(fault);
      const newVersion = await recordEdit(tx, stack, {
        updateId: randomUUID(),
        kind: 'import',
        message: `Restored version ${stackVersion}`,
        requestedBy: null,
        state,
      });
      await record(tx, newVersion);
      return newVersion;
    });
  }
}

import { randomUUID } from 'node:crypto';
import { createFoldRepository } from '../journal/fold-repository.ts';
import type { Database } from '../platform/db/database.ts';
import { NotFoundError, UnavailableError } from '../platform/errors/errors.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { bytesOf } from './byte-source.ts';
import { createCheckpointRepository } from './checkpoint-repository.ts';
import { StackBusyError } from './deployment-importer.ts';
import type { DocumentStore } from './document-store.ts';
import type { StateReader } from './state-reader.ts';

/** Makes the state of an earlier version of a stack its newest one. */
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
   * Stores the state of `stackVersion` as a new version, recorded as an import, and takes what journals of the stack have left
   * out as accepted; both or neither. Returns the new version. Throws NotFoundError, StackBusyError and UnavailableError.
   */
  async restore(stackId: string, stackVersion: number): Promise<number> {
    const state = await this.#states.readVersion(stackId, stackVersion);
    if (!state) throw new NotFoundError(`The stack has no version ${stackVersion}`);
    const bytes = Buffer.concat(await Array.fromAsync(state.bytes));
    const document = await this.#documents.save(bytesOf(bytes));
    return this.#db.inTransaction(async (tx) => {
      const stacks = createStackRepository(tx);
      const updates = createUpdateRepository(tx);
      const stack = await stacks.lockById(stackId);
      if (!stack) throw new NotFoundError('The stack was deleted meanwhile');
      if (stack.activeUpdateId !== null) throw new StackBusyError();
      if (await updates.findWithTail(stackId)) {
        throw new UnavailableError('The state of an interrupted update is still being compacted; please try again');
      }
      await createFoldRepository(tx).acceptFaults(stackId);
      const updateId = randomUUID();
      const newVersion = stack.stackVersion + 1;
      await updates.insertEnded({
        id: updateId,
        stackId,
        kind: 'import',
        stackVersion: newVersion,
        message: `Restored version ${stackVersion}`,
        environment: '{}',
        requestedBy: null,
        baseCheckpointId: stack.checkpointId,
      });
      const checkpointId = await createCheckpointRepository(tx).insert(
        { stackId, updateId },
        { document, resourceCount: state.resourceCount },
      );
      if (checkpointId === null)
        throw new UnavailableError('The stored document was deleted meanwhile; please try again');
      await stacks.setHead(stackId, checkpointId);
      await stacks.publishVersion(stackId, newVersion);
      return newVersion;
    });
  }
}

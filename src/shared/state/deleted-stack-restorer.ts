import { randomUUID } from 'node:crypto';
import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { violatedConstraint } from '../platform/db/sqlstate.ts';
import { ConflictError } from '../platform/errors/errors.ts';
import {
  deletedStackNotFound,
  NameTakenError,
  StackHeldError,
  StackPurgedError,
} from '../stacks/deleted-stack-errors.ts';
import { assertStackRef, formatStackRef, type StackRef } from '../stacks/names.ts';
import { createRestorableStackRepository, type RestorableStackRow } from '../stacks/restorable-stack-repository.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import { readTags, tagsIn } from '../stacks/tags.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import type { CheckpointRepository, NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import type { DocumentReader } from './checkpoints/document-reader.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { renameDeployment } from './deployments/rename-deployment.ts';
import { recordEdit } from './record-edit.ts';

export interface Restoration {
  readonly organization: string;
  readonly id: string;
  /** Null for the previous name. */
  readonly project: string | null;
  readonly stack: string | null;
  readonly requestedBy: string | null;
}

/** Added by the caller to the transaction. */
export interface RestorationSteps {
  /** Checks rights and limits, before any lock on a stack. */
  readonly hold: (tx: Queryable) => Promise<void>;
  readonly record: (tx: Queryable, from: RestorableStackRow, to: StackRef) => Promise<void>;
}

export class DeletedStackRestorer {
  readonly #checkpoints: CheckpointRepository;
  readonly #db: Database;
  readonly #documents: DocumentStore;
  readonly #documentReader: DocumentReader;

  constructor(parts: {
    checkpoints: CheckpointRepository;
    db: Database;
    documents: DocumentStore;
    documentReader: DocumentReader;
  }) {
    this.#checkpoints = parts.checkpoints;
    this.#db = parts.db;
    this.#documents = parts.documents;
    this.#documentReader = parts.documentReader;
  }

  /**
   * Takes one transaction. If the name changes, the state gets the new name in a new version, as in a rename. Throws NotFoundError,
   * StackPurgedError, NameTakenError, ConflictError, InvalidRequestError, and the errors of `hold`, without a change.
   */
  async restore(restoration: Restoration, { hold, record }: RestorationSteps): Promise<StackRef> {
    const { id, organization, requestedBy } = restoration;
    const found = assertRestorable(await createRestorableStackRepository(this.#db).find(organization, id));
    const to = {
      organization,
      project: restoration.project ?? found.project,
      stack: restoration.stack ?? found.stack,
    };
    assertStackRef(to);
    const isRenamed = to.project !== found.project || to.stack !== found.stack;
    if (isRenamed ? await createStackRepository(this.#db).find(to) : found.isNameTaken)
      throw await this.#nameTaken(found, to);
    const state = isRenamed ? await this.#renameState(found, to) : null;
    try {
      await this.#db.inTransaction(async (tx) => {
        await hold(tx);
        const restorable = createRestorableStackRepository(tx);
        const stacks = createStackRepository(tx);
        const locked = assertRestorable(await restorable.lock(organization, id));
        // Name and state may have changed since they were read.
        if (locked.deletedMicros !== found.deletedMicros)
          throw new ConflictError(`Stack '${formatStackRef(locked)}' was restored and deleted again meanwhile`);
        const projectId = isRenamed ? await stacks.ensureProject(locked.organizationId, to.project) : locked.projectId;
        await restorable.restore(id, projectId, to.stack);
        if (isRenamed) await recordRenamed(tx, { from: locked, to, requestedBy, state });
        await record(tx, locked, to);
      });
    } catch (error) {
      throw violatedConstraint(error) === 'stacks_name_key' ? await this.#nameTaken(found, to) : error;
    }
    return to;
  }

  /** Deletes the stack's data keys at once and leaves its data to the sweep. Throws NotFoundError, StackHeldError and StackPurgedError. */
  async purge(
    { id, organization }: Pick<Restoration, 'id' | 'organization'>,
    { hold, record }: { hold: RestorationSteps['hold']; record: (tx: Queryable, from: StackRef) => Promise<void> },
  ): Promise<StackRef> {
    return this.#db.inTransaction(async (tx) => {
      await hold(tx);
      const restorable = createRestorableStackRepository(tx);
      const locked = await restorable.lock(organization, id);
      if (!locked) throw deletedStackNotFound();
      if (locked.restorableUntil === null) throw new StackPurgedError(locked);
      if (locked.isHeld) throw new StackHeldError(locked);
      await restorable.endTime(id);
      await record(tx, locked);
      return locked;
    });
  }

  /** Null if the stack has no state. */
  async #renameState(from: RestorableStackRow, to: StackRef): Promise<NewCheckpoint | null> {
    const checkpoint = from.checkpointId === null ? null : await this.#checkpoints.find(from.checkpointId);
    if (!checkpoint) return null;
    const renamed = await renameDeployment(() => this.#documentReader.open(checkpoint), { from, to });
    return { document: await this.#documents.save(renamed), resourceCount: checkpoint.resourceCount };
  }

  async #nameTaken(found: RestorableStackRow, to: StackRef): Promise<NameTakenError> {
    if (to.project !== found.project) return new NameTakenError(to, null);
    const names = ['restored', ...Array.from({ length: 8 }, (_, index) => `restored-${index + 2}`)];
    const free = await createRestorableStackRepository(this.#db).findFreeName(
      found.projectId,
      names.map((name) => `${found.stack.slice(0, 80)}-${name}`),
    );
    return new NameTakenError(to, free);
  }
}

/** Throws NotFoundError, StackPurgedError. */
function assertRestorable(found: RestorableStackRow | null): RestorableStackRow {
  if (!found) throw deletedStackNotFound();
  if (!found.isRestorable) throw new StackPurgedError(found);
  return found;
}

/** The stack's row has the new names already. */
async function recordRenamed(
  tx: Queryable,
  {
    from,
    requestedBy,
    state,
    to,
  }: { from: RestorableStackRow; to: StackRef; requestedBy: string | null; state: NewCheckpoint | null },
): Promise<void> {
  const stacks = createStackRepository(tx);
  const stack = await stacks.lockById(from.id);
  if (!stack) throw deletedStackNotFound();
  // Pending entries would be replayed over the state under its old names.
  if (await createUpdateRepository(tx).findWithPendingEntries(from.id))
    throw new ConflictError(
      `An interrupted update of '${formatStackRef(from)}' has not been compacted: restore the stack under its own name, and rename it then`,
    );
  await stacks.insertFormerName({ ...stack, project: from.project, stack: from.stack });
  await recordEdit(tx, stack, {
    updateId: randomUUID(),
    kind: 'rename',
    message: `Restored ${formatStackRef(from)} as ${formatStackRef(to)}`,
    requestedBy,
    state,
  });
  const tags = readTags(stack.tags);
  if (tags['pulumi:project'] === undefined) return;
  await stacks.setTags(stack.id, JSON.stringify(tagsIn(to.project, tags)));
}

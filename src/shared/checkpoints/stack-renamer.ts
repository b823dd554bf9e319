import type { Queryable } from '../platform/db/sql.ts';
import { violatedConstraint } from '../platform/db/sqlstate.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../stacks/names.ts';
import { renameDeployment } from '../stacks/rename-deployment.ts';
import { stackExists, stackNotFound } from '../stacks/stack-errors.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { readTags } from '../stacks/tags.ts';
import { type AdmittedChange, type AdmittedChanges, StackChangedError } from '../updates/admitted-changes.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { type CheckpointRepository, createCheckpointRepository, type NewCheckpoint } from './checkpoint-repository.ts';
import type { DocumentGuard } from './document-guard.ts';
import type { DocumentStore } from './document-store.ts';

/** The same rename run twice commits once. */
export interface StackRenaming extends AdmittedChange {
  readonly from: StackRef;
  readonly to: StackRef;
  readonly requestedBy: string;
}

/**
 * Renames a stack: its place, and every mention of it in its newest state (URNs, root resource, secrets provider), since the
 * CLI does no more than ask for it. Recorded as an update of kind rename, which owns a stack version. Memory does not grow with the
 * state.
 */
export class StackRenamer {
  readonly #changes: AdmittedChanges;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #guard: DocumentGuard;

  constructor(parts: {
    changes: AdmittedChanges;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    guard: DocumentGuard;
  }) {
    this.#changes = parts.changes;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#guard = parts.guard;
  }

  /**
   * Resolves once the stack is renamed, over the head that it was admitted against. Throws NotFoundError, ConflictError (the target
   * exists), DocumentDamagedError and what AdmittedChanges.commit throws, which change nothing.
   */
  async rename(request: StackRenaming, beforeCommit: () => Promise<void> = async () => {}): Promise<void> {
    if (await this.#changes.isCommitted(request)) return;
    const renamed = await this.#renameState(request);
    await beforeCommit();
    try {
      await this.#changes.commit(request, (tx, stack) => commit(tx, stack, request, renamed));
    } catch (error) {
      throw violatedConstraint(error) === 'stacks_name_key' ? stackExists(request.to) : error;
    }
  }

  /** The newest state with the new names, stored; null when there is none. Throws StackChangedError. */
  async #renameState({ from, to, admission }: StackRenaming): Promise<NewCheckpoint | null> {
    if (admission.checkpointId === null) return null;
    const checkpoint = await this.#checkpoints.find(admission.checkpointId);
    if (!checkpoint) throw new StackChangedError();
    const renamed = await renameDeployment(() => this.#guard.open(checkpoint), { from, to });
    return { document: await this.#documents.save(renamed), resourceCount: checkpoint.resourceCount };
  }
}

async function commit(
  tx: Queryable,
  stack: StackRow,
  { updateId, from, to, requestedBy }: StackRenaming,
  renamed: NewCheckpoint | null,
): Promise<void> {
  if (formatStackRef(stack) !== formatStackRef(from)) throw stackNotFound(from);
  const stacks = createStackRepository(tx);
  const stackVersion = stack.stackVersion + 1;
  await createUpdateRepository(tx).insertEnded({
    id: updateId,
    stackId: stack.id,
    kind: 'rename',
    stackVersion,
    message: `Renamed ${formatStackRef(from)} to ${formatStackRef(to)}`,
    environment: '{}',
    requestedBy,
    baseCheckpointId: stack.checkpointId,
  });
  if (renamed) {
    const id = await createCheckpointRepository(tx).insert({ stackId: stack.id, updateId }, renamed);
    if (id === null) throw new UnavailableError('The renamed state was deleted meanwhile; please retry');
    await stacks.setHead(stack.id, id);
  }
  await stacks.publishVersion(stack.id, stackVersion);
  await stacks.insertFormerName(stack);
  await stacks.rename(stack.id, await stacks.ensureProject(stack.organizationId, to.project), to.stack);
  const tags = readTags(stack.tags);
  if (tags['pulumi:project'] === undefined) return;
  tags['pulumi:project'] = to.project;
  await stacks.setTags(stack.id, JSON.stringify(tags));
}

import type { AuditSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { violatedConstraint } from '../platform/db/sqlstate.ts';
import { formatStackRef, type StackRef } from '../stacks/names.ts';
import { createRestorableStackRepository } from '../stacks/restorable-stack-repository.ts';
import { stackExists, stackNotFound } from '../stacks/stack-errors.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { readTags, tagsIn } from '../stacks/tags.ts';
import { assertNotConsumedSince } from '../updates/rules/new-consumers.ts';
import type { CheckpointRepository, NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import type { DocumentReader } from './checkpoints/document-reader.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { renameDeployment } from './deployments/rename-deployment.ts';
import { StackChangedError, type StateEdit, type StateEdits } from './edits/state-edits.ts';
import { recordEdit } from './record-edit.ts';

/** Idempotent: a second run of the same rename commits nothing. */
export interface StackRenaming extends StateEdit {
  readonly from: StackRef;
  readonly to: StackRef;
  readonly requestedBy: string | null;
  readonly source?: AuditSource | undefined;
}

/**
 * Rewrites every reference to the stack in its newest state, because the CLI leaves this to the server. The rename is recorded as an update
 * with its own stack version. Memory use does not grow with the state.
 */
export class StackRenamer {
  readonly #stateEdits: StateEdits;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #documentReader: DocumentReader;

  constructor(parts: {
    stateEdits: StateEdits;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    documentReader: DocumentReader;
  }) {
    this.#stateEdits = parts.stateEdits;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#documentReader = parts.documentReader;
  }

  /**
   * Throws ConflictError if the target exists, or if a rule protects a consumer of the stack. Also throws NotFoundError,
   * DocumentDamagedError and the errors of StateEdits.commit. Changes nothing then.
   */
  async rename(request: StackRenaming, beforeCommit: () => Promise<void> = async () => {}): Promise<void> {
    if (await this.#stateEdits.isCommitted(request)) return;
    const renamed = await this.#renameState(request);
    await beforeCommit();
    try {
      await this.#stateEdits.commit(request, async (tx, stack, assertMayBecome) => {
        const { project, stack: name } = request.to;
        const next = { project, stack: name, tags: tagsIn(project, readTags(stack.tags)) };
        await assertMayBecome(next);
        // Null: an operator.
        if (request.tokenId !== null) await assertNotConsumedSince(tx, stack);
        const projectId = await createStackRepository(tx).ensureProject(stack.organizationId, project);
        await commit(tx, stack, request, { projectId, state: renamed });
        // The stack also takes the place of a former stack of that name, whose deletion has ended by now: deleting a stack and renaming
        // another must not bypass its rules and policy groups.
        const restorable = createRestorableStackRepository(tx);
        const former = await restorable.findFormer(projectId, name);
        if (!former) return;
        await assertMayBecome(next, { project, stack: name, tags: readTags(former.tags) });
        await restorable.addToGroupsOf(former.id, stack.id);
      });
    } catch (error) {
      throw violatedConstraint(error) === 'stacks_name_key' ? stackExists(request.to) : error;
    }
  }

  /** Null if the stack has no state. Throws StackChangedError. */
  async #renameState({ from, to, admission }: StackRenaming): Promise<NewCheckpoint | null> {
    if (admission.checkpointId === null) return null;
    const checkpoint = await this.#checkpoints.find(admission.checkpointId);
    if (!checkpoint) throw new StackChangedError();
    const renamed = await renameDeployment(() => this.#documentReader.open(checkpoint), { from, to });
    return { document: await this.#documents.save(renamed), resourceCount: checkpoint.resourceCount };
  }
}

async function commit(
  tx: Queryable,
  stack: StackRow,
  { updateId, from, to, requestedBy, source }: StackRenaming,
  { projectId, state }: { readonly projectId: string; readonly state: NewCheckpoint | null },
): Promise<void> {
  if (formatStackRef(stack) !== formatStackRef(from)) throw stackNotFound(from);
  await recordEdit(tx, stack, {
    updateId,
    kind: 'rename',
    message: `Renamed ${formatStackRef(from)} to ${formatStackRef(to)}`,
    requestedBy,
    state,
  });
  const stacks = createStackRepository(tx);
  await stacks.insertFormerName(stack);
  await stacks.rename(stack.id, projectId, to.stack);
  if (source) {
    const event = { organization: from.organization, object: formatStackRef(from), updateId };
    const details = { stackId: stack.id, to: formatStackRef(to) };
    await createAuditRepository(tx).insert(source, { action: 'stack.rename', ...event, details });
  }
  const tags = readTags(stack.tags);
  if (tags['pulumi:project'] === undefined) return;
  await stacks.setTags(stack.id, JSON.stringify(tagsIn(to.project, tags)));
}

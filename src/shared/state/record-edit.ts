import type { Queryable } from '../platform/db/sql.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import { assertImported } from '../stacks/stack-errors.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { StackBusyError } from '../updates/update-errors.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { createCheckpointRepository, type NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import { assertNoFault } from './journal/journal-fault.ts';

/** Made outside a running update. */
export interface RecordedEdit {
  readonly updateId: string;
  readonly kind: 'import' | 'rename';
  readonly message: string;
  readonly requestedBy: string | null;
  /** Null if the stack has no state. */
  readonly state: NewCheckpoint | null;
}

/**
 * Creates a new version of a locked stack, and the update that records it. Throws StackBusyError, ImportUnfinishedError, JournalFaultError,
 * and UnavailableError if the stack's current state has pending entries or the sweep has deleted the new state.
 */
export async function recordEdit(
  tx: Queryable,
  stack: StackRow,
  { updateId, kind, message, requestedBy, state }: RecordedEdit,
): Promise<number> {
  if (stack.activeUpdateId !== null) throw new StackBusyError();
  assertImported(stack);
  await assertNothingPending(tx, stack.id);
  await assertNoFault(tx, stack.id);
  const stackVersion = stack.stackVersion + 1;
  await createUpdateRepository(tx).insertEnded({
    id: updateId,
    stackId: stack.id,
    kind,
    stackVersion,
    message,
    environment: '{}',
    requestedBy,
    baseCheckpointId: stack.checkpointId,
  });
  if (state) await recordState(tx, { stackId: stack.id, updateId }, state);
  await createStackRepository(tx).publishVersion(stack.id, stackVersion);
  return stackVersion;
}

/** For a stack created in the given transaction, before its first version. Throws UnavailableError. */
export function recordInitialState(tx: Queryable, stackId: string, state: NewCheckpoint): Promise<void> {
  return recordState(tx, { stackId, updateId: null }, state);
}

/** Throws UnavailableError. */
export async function assertNothingPending(tx: Queryable, stackId: string): Promise<void> {
  if (!(await createUpdateRepository(tx).findWithPendingEntries(stackId))) return;
  throw new UnavailableError('The state of an interrupted update is still being compacted; please retry', {
    retryAfterSeconds: 1,
  });
}

async function recordState(
  tx: Queryable,
  owner: { readonly stackId: string; readonly updateId: string | null },
  state: NewCheckpoint,
): Promise<void> {
  const checkpointId = await createCheckpointRepository(tx).insert(owner, state);
  if (checkpointId === null) {
    throw new UnavailableError('The state was deleted meanwhile; please retry');
  }
  await createStackRepository(tx).setHead(owner.stackId, checkpointId);
}

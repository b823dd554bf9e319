import { serverSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { formatStackRef } from '../stacks/names.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { isLeaseLoss, type LeaseLoss } from './lease.ts';
import { createUpdateRepository, type UpdateRow } from './update-repository.ts';
import { type Transition, transition, type UpdateTrigger } from './update-state.ts';

/** An update and its stack, both locked by the current transaction. */
export interface LockedUpdate {
  readonly update: UpdateRow;
  readonly stack: StackRow;
}

/** Locks the stack, then the update (always in this order). Returns null if there is no such update. */
export async function lockUpdate(tx: Queryable, updateId: string): Promise<LockedUpdate | null> {
  const updates = createUpdateRepository(tx);
  const found = await updates.find(updateId);
  if (!found) return null;
  const stack = await createStackRepository(tx).lockById(found.stackId);
  const update = await updates.lock(updateId);
  return stack && update ? { stack, update } : null;
}

/**
 * Ends a locked update: sets its status, releases the stack and publishes the stack version. Returns the transition that the
 * trigger causes in the update's state; nothing is changed unless that is a move.
 */
export async function endUpdate(
  tx: Queryable,
  { update, stack }: LockedUpdate,
  trigger: UpdateTrigger,
): Promise<Transition> {
  const step = transition(update.status, trigger);
  if (step.outcome !== 'move') return step;
  const loss = isLeaseLoss(update.endReason) ? update.endReason : null;
  const reason =
    trigger.type === 'complete' ? null : (loss ?? (trigger.type === 'expire' ? 'lease-expired' : 'cancelled'));
  // After a loss the hash is kept, so that the holder can be told why. It no longer grants access.
  await createUpdateRepository(tx).end(update.id, step.to, reason, trigger.type === 'complete' || loss !== null);
  const stacks = createStackRepository(tx);
  if (stack.activeUpdateId === update.id) await stacks.setActiveUpdate(stack.id, null);
  if (update.stackVersion !== null) await stacks.publishVersion(stack.id, update.stackVersion);
  await createAuditRepository(tx).closeSecretReads({ updateId: update.id });
  return step;
}

/** An update that was ended because its lease ended. */
export interface ExpiredUpdate {
  readonly updateId: string;
  readonly reason: LeaseLoss | 'lease-expired';
}

async function endExpired(tx: Queryable, { update, stack }: LockedUpdate): Promise<ExpiredUpdate | null> {
  const step = await endUpdate(tx, { update, stack }, { type: 'expire' });
  if (step.outcome !== 'move') return null;
  const reason = isLeaseLoss(update.endReason) ? update.endReason : 'lease-expired';
  await createAuditRepository(tx).insert(serverSource, {
    action: 'update.expire',
    organization: stack.organization,
    object: formatStackRef(stack),
    updateId: update.id,
    details: { stackId: stack.id, kind: update.kind, reason },
  });
  return { updateId: update.id, reason };
}

/** Releases a locked stack from an update whose lease or waiting time is over. Clips remaining time above one lease. */
export async function reclaimExpired(
  tx: Queryable,
  stack: StackRow,
  leaseSeconds: number,
): Promise<ExpiredUpdate | null> {
  if (stack.activeUpdateId === null) return null;
  const updates = createUpdateRepository(tx);
  const update = await updates.lock(stack.activeUpdateId);
  if (update?.expired) return endExpired(tx, { update, stack });
  if (update && update.secondsLeft > leaseSeconds) await updates.clipLeases(leaseSeconds, stack.id);
  return null;
}

/** Ends the update if it has expired. Safe to run on any number of replicas. Returns the update if this call ended it. */
export async function expireUpdate(db: Database, updateId: string): Promise<ExpiredUpdate | null> {
  return db.inTransaction(async (tx) => {
    const locked = await lockUpdate(tx, updateId);
    return locked?.update.expired ? endExpired(tx, locked) : null;
  });
}

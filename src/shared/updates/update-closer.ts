import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { isLeaseLoss, type LeaseLoss } from './lease.ts';
import { createUpdateRepository, type UpdateRow } from './update-repository.ts';
import { type Transition, transition, type UpdateTrigger } from './update-state.ts';

/** An update and its stack, both locked by the transaction at hand. */
export interface LockedUpdate {
  readonly update: UpdateRow;
  readonly stack: StackRow;
}

/**
 * Locks the stack and then the update (everywhere in that order); null when there is no such update.
 */
export async function lockUpdate(tx: Queryable, updateId: string): Promise<LockedUpdate | null> {
  const updates = createUpdateRepository(tx);
  const found = await updates.find(updateId);
  if (!found) return null;
  const stack = await createStackRepository(tx).lockById(found.stackId);
  const update = await updates.lock(updateId);
  return stack && update ? { stack, update } : null;
}

/**
 * Ends a locked update as the trigger says: its status, the stack's lock and the stack version go together.
 * Returns what the trigger meant in the update's state; nothing is changed unless that is a move.
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
  // Who lost its lease can still be told why; it is let in by nothing.
  await createUpdateRepository(tx).end(update.id, step.to, reason, trigger.type === 'complete' || loss !== null);
  const stacks = createStackRepository(tx);
  if (stack.activeUpdateId === update.id) await stacks.setActiveUpdate(stack.id, null);
  if (update.stackVersion !== null) await stacks.publishVersion(stack.id, update.stackVersion);
  return step;
}

/** An update that was ended because its lease is over. */
export interface ExpiredUpdate {
  readonly updateId: string;
  readonly reason: LeaseLoss | 'lease-expired';
}

async function endExpired(tx: Queryable, { update, stack }: LockedUpdate): Promise<ExpiredUpdate | null> {
  const step = await endUpdate(tx, { update, stack }, { type: 'expire' });
  if (step.outcome !== 'move') return null;
  return { updateId: update.id, reason: isLeaseLoss(update.endReason) ? update.endReason : 'lease-expired' };
}

/** Frees a locked stack of an update whose lease or waiting time is over; sees to it that what is left is no more than a lease. */
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

/** Ends the update if it has expired by now; safe to run on any number of replicas. Returns what this call ended, or null. */
export async function expireUpdate(db: Database, updateId: string): Promise<ExpiredUpdate | null> {
  return db.inTransaction(async (tx) => {
    const locked = await lockUpdate(tx, updateId);
    return locked?.update.expired ? endExpired(tx, locked) : null;
  });
}

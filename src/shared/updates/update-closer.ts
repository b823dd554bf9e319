import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { createUpdateRepository, type UpdateRow } from './update-repository.ts';
import { isActive, type Transition, transition, type UpdateTrigger } from './update-state.ts';

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
  const reason = trigger.type === 'expire' ? 'lease-expired' : trigger.type === 'cancel' ? 'cancelled' : null;
  await createUpdateRepository(tx).end(update.id, step.to, reason, trigger.type === 'complete');
  const stacks = createStackRepository(tx);
  if (stack.activeUpdateId === update.id) await stacks.setActiveUpdate(stack.id, null);
  if (update.stackVersion !== null) await stacks.publishVersion(stack.id, update.stackVersion);
  return step;
}

/** Frees a locked stack of an update whose lease or waiting time is over; sees to it that what is left is no more than a lease. */
async function reclaimExpired(tx: Queryable, stack: StackRow, leaseSeconds: number): Promise<void> {
  if (stack.activeUpdateId === null) return;
  const updates = createUpdateRepository(tx);
  const update = await updates.lock(stack.activeUpdateId);
  if (update?.expired) await endUpdate(tx, { update, stack }, { type: 'expire' });
  else if (update && update.secondsLeft > leaseSeconds) await updates.clipLeases(leaseSeconds, stack.id);
}

/** Ends the update if it has expired by now; safe to run on any number of replicas. Returns whether this call ended it. */
export async function expireUpdate(db: Database, updateId: string): Promise<boolean> {
  return db.inTransaction(async (tx) => {
    const locked = await lockUpdate(tx, updateId);
    if (!locked?.update.expired) return false;
    const step = await endUpdate(tx, locked, { type: 'expire' });
    return step.outcome === 'move';
  });
}

/**
 * Makes a stack ready for its next change: an update whose lease is over is ended, and the journal of an ended one is folded
 * by `fold`, so that the head is whole. A live update goes on, for one more lease at most without being renewed.
 */
export async function settleStack(
  db: Database,
  stackId: string,
  leaseSeconds: number,
  fold: (updateId: string) => Promise<void>,
): Promise<void> {
  await db.inTransaction(async (tx) => {
    const stack = await createStackRepository(tx).lockById(stackId);
    if (stack) await reclaimExpired(tx, stack, leaseSeconds);
  });
  const withTail = await createUpdateRepository(db).findWithTail(stackId);
  if (withTail && !isActive(withTail.status)) await fold(withTail.id);
}

import { serverSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import { isLeaseLoss, type LeaseLoss } from './lease.ts';
import { createLockedUpdateRepository, type LockedUpdate } from './locked-update-repository.ts';
import { createUpdateRepository } from './update-repository.ts';
import { type Transition, transition, type UpdateTrigger } from './update-state.ts';

/** Locks the stack, then the update (always in this order). Returns null if there is no such update. */
export function lockUpdate(tx: Queryable, updateId: string): Promise<LockedUpdate | null> {
  return createLockedUpdateRepository(tx).lock(updateId);
}

/**
 * Ends a locked update: sets its status, releases the stack and publishes the stack version. Returns the transition that the
 * trigger causes in the update's state; nothing is changed unless that is a move.
 */
export async function endUpdate(
  tx: Queryable,
  { update, stack, hasSecretReads, missingEntries }: LockedUpdate,
  trigger: UpdateTrigger,
): Promise<Transition> {
  const step = transition(update.status, trigger);
  if (step.outcome !== 'move') return step;
  const loss = isLeaseLoss(update.endReason) ? update.endReason : null;
  const reason =
    trigger.type === 'complete' ? null : (loss ?? (trigger.type === 'expire' ? 'lease-expired' : 'cancelled'));
  // After a loss the hash is kept, so that the holder can be told why. It no longer grants access.
  const locked = createLockedUpdateRepository(tx);
  await locked.end({
    id: update.id,
    stackId: stack.id,
    status: step.to,
    reason,
    keepLease: trigger.type === 'complete' || loss !== null,
    stackVersion: update.stackVersion,
  });
  if (missingEntries !== null) await locked.recordMissingEntries(update.id, missingEntries);
  if (hasSecretReads) await createAuditRepository(tx).closeSecretReads({ updateId: update.id });
  return step;
}

/** What the audit log says of the gaps in the journal of an update that ends. */
export function describeGap({ missingEntries }: LockedUpdate): { readonly missingEntries?: string } {
  return missingEntries === null ? {} : { missingEntries };
}

/** An update that was ended because its lease ended. */
export interface ExpiredUpdate {
  readonly updateId: string;
  readonly reason: LeaseLoss | 'lease-expired';
}

async function endExpired(tx: Queryable, locked: LockedUpdate): Promise<ExpiredUpdate | null> {
  const { update, stack } = locked;
  const step = await endUpdate(tx, locked, { type: 'expire' });
  if (step.outcome !== 'move') return null;
  const reason = isLeaseLoss(update.endReason) ? update.endReason : 'lease-expired';
  await createAuditRepository(tx).insert(serverSource, {
    action: 'update.expire',
    organization: stack.organization,
    object: formatStackRef(stack),
    updateId: update.id,
    details: { stackId: stack.id, kind: update.kind, reason, ...describeGap(locked) },
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
  const locked = await lockUpdate(tx, stack.activeUpdateId);
  if (locked?.update.expired) return endExpired(tx, locked);
  if (locked && locked.update.secondsLeft > leaseSeconds)
    await createUpdateRepository(tx).clipLeases(leaseSeconds, stack.id);
  return null;
}

/** Ends the update if it has expired. Safe to run on any number of replicas. Returns the update if this call ended it. */
export async function expireUpdate(db: Database, updateId: string): Promise<ExpiredUpdate | null> {
  return db.inTransaction(async (tx) => {
    const locked = await lockUpdate(tx, updateId);
    return locked?.update.expired ? endExpired(tx, locked) : null;
  });
}

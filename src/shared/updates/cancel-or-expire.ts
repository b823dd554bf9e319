import { serverSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { Database } from '../platform/db/database.ts';
import { limitLockWait } from '../platform/db/limit-lock-wait.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { StackRow } from '../stacks/stack-repository.ts';
import { isLeaseLoss, type LeaseLoss } from './lease-loss.ts';
import { createLockedUpdateRepository, type LockedUpdate } from './locked-update-repository.ts';
import { createUpdateRepository } from './update-repository.ts';
import { isActive } from './update-state.ts';

/** Maximum wait for each lock of an expired update, in ms. Other expired updates wait meanwhile. */
const expiryLockMs = 500;

/** Locks the stack, then the update (always in this order). */
export function lockUpdate(tx: Queryable, updateId: string): Promise<LockedUpdate | null> {
  return createLockedUpdateRepository(tx).lock(updateId);
}

/** Ends a locked update as cancelled, in place of its client. Returns false, and changes nothing, if it was not active. */
export async function cancelUpdate(
  tx: Queryable,
  { missingEntries, stack, update }: LockedUpdate,
  reason: 'cancelled' | 'lease-expired',
): Promise<boolean> {
  if (!isActive(update.status)) return false;
  const loss = isLeaseLoss(update.endReason) ? update.endReason : null;
  await createLockedUpdateRepository(tx).end({
    id: update.id,
    stackId: stack.id,
    status: 'cancelled',
    reason: loss ?? reason,
    // After a loss, the hash no longer grants access, but lets the server tell the holder the reason.
    keepLease: loss !== null,
    stackVersion: update.stackVersion,
    missingEntries,
  });
  return true;
}

export function describeGap({ missingEntries }: LockedUpdate): { readonly missingEntries?: string } {
  return missingEntries === null ? {} : { missingEntries };
}

/** An update that was ended because its lease ended. */
export interface ExpiredUpdate {
  readonly updateId: string;
  readonly kind: LockedUpdate['update']['kind'];
  readonly reason: LeaseLoss | 'lease-expired';
}

async function endExpired(tx: Queryable, locked: LockedUpdate): Promise<ExpiredUpdate | null> {
  const { update, stack } = locked;
  if (!(await cancelUpdate(tx, locked, 'lease-expired'))) return null;
  const reason = isLeaseLoss(update.endReason) ? update.endReason : 'lease-expired';
  await createAuditRepository(tx).insert(serverSource, {
    action: 'update.expire',
    organization: stack.organization,
    object: formatStackRef(stack),
    updateId: update.id,
    details: { stackId: stack.id, kind: update.kind, reason, ...describeGap(locked) },
  });
  return { updateId: update.id, kind: update.kind, reason };
}

/** Releases a locked stack from an update whose lease or waiting time is over. Clips the remaining time to one lease. */
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

/**
 * Safe on any number of replicas. Returns the update if this call ended it. Fails after a short wait if another transaction has locked its
 * row or the stack's.
 */
export async function expireUpdate(db: Database, updateId: string): Promise<ExpiredUpdate | null> {
  return db.inTransaction(async (tx) => {
    await limitLockWait(tx, expiryLockMs);
    const locked = await lockUpdate(tx, updateId);
    return locked?.update.expired ? endExpired(tx, locked) : null;
  });
}

import { formatStackRef } from '../../shared/stacks/names.ts';
import { JournalNeededError } from '../../shared/state/journal/change-limits/change-limits.ts';
import { JournalFaultError } from '../../shared/state/journal/journal-fault.ts';
import { cancelUpdate, describeGap, lockUpdate } from '../../shared/updates/cancel-or-expire.ts';
import type { LockedUpdate } from '../../shared/updates/locked-update-repository.ts';
import type { UpdateRow } from '../../shared/updates/update-repository.ts';
import { DecidingTagError } from '../access/tag-changes.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';

/** Why an abandoned update ends, as the audit log names it. */
export type WithdrawReason = 'client-gone' | 'not-started' | 'journal-fault' | 'journal-needed' | 'tags-refused';

interface UnknownLease {
  readonly hash: Buffer;
  /** The expiry at the time of issue. Left out: the lease cannot have been renewed. */
  readonly expiresAt?: Date;
}

export interface Withdrawal {
  readonly updateId: string;
  readonly reason: WithdrawReason;
  readonly lease?: UnknownLease | undefined;
}

/** Why an update ends after its start was refused with `error`. Null: the client may start it later. */
export function reasonToWithdraw(error: unknown): WithdrawReason | null {
  if (error instanceof JournalFaultError) return 'journal-fault';
  if (error instanceof JournalNeededError) return 'journal-needed';
  return error instanceof DecidingTagError ? 'tags-refused' : null;
}

/** Nobody has renewed this lease or written with it. */
function isUnused(update: UpdateRow, { expiresAt, hash }: UnknownLease): boolean {
  const isRenewed = expiresAt !== undefined && update.expiresAt > expiresAt;
  const written = update.entryCount + update.checkpointCount;
  return update.leaseHash?.equals(hash) === true && !isRenewed && written === 0;
}

/** Ends an update that was not started, or was started with a lease that no client has received. Changes no other update. */
export async function withdrawUpdate(
  { db, metrics }: ApiContext,
  { lease, reason, updateId }: Withdrawal,
  audit: AuditTrail,
): Promise<void> {
  const ended = await db.inTransaction(async (tx) => {
    const locked = await lockUpdate(tx, updateId);
    if (!locked) return null;
    const { kind, status } = locked.update;
    const isStarted = status === 'running' && lease !== undefined && isUnused(locked.update, lease);
    if (status !== 'not started' && !isStarted) return null;
    await cancelUpdate(tx, locked, 'cancelled');
    await audit.record(tx, { action: 'update.cancel', ...endOf(locked, { reason }) });
    return isStarted ? kind : null;
  });
  if (ended) metrics.updatesEnded.labels(ended, 'cancelled').inc();
}

export function endOf(locked: LockedUpdate, details: Readonly<Record<string, unknown>>) {
  const { stack, update } = locked;
  const { checkpointCount, dryRun, entryCount, id, kind, stackVersion } = update;
  const written = { journalEntries: entryCount, checkpoints: checkpointCount };
  return {
    organization: stack.organization,
    object: formatStackRef(stack),
    updateId: id,
    details: { stackId: stack.id, kind, dryRun, stackVersion, ...written, ...describeGap(locked), ...details },
  };
}

import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import { type ExpiredUpdate, reclaimExpired } from '../updates/cancel-or-expire.ts';
import { noteEnded } from '../updates/end-revoked-leases.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import { assertNoFault } from './journal/journal-fault.ts';

export interface ReclaimOptions {
  /** A compaction uses this organization's share of the workers. */
  readonly organization?: string;
  readonly admitsFault?: boolean;
  /** Waits for other transactions that have locked the stack, so that the caller can then check whether its client is still there. */
  readonly waitsForLock?: boolean;
}

export type Reclaim = (stackId: string, options?: ReclaimOptions) => Promise<void>;

/**
 * Ends an update whose lease has expired and calls `compact` for an ended update with pending entries, so that the head is complete. A
 * running update continues, but for at most one more lease unless it is renewed. Throws JournalFaultError if the head lacks entries that
 * could not be replayed, unless `admitsFault` is set.
 */
export async function reclaimStack(
  { db, logger, metrics }: { readonly db: Database; readonly logger: Logger; readonly metrics: Metrics },
  stackId: string,
  leaseSeconds: number,
  compact: (updateId: string) => Promise<void>,
  { admitsFault = false, waitsForLock = false }: ReclaimOptions = {},
): Promise<void> {
  const reclaim = async (tx: Queryable): Promise<ExpiredUpdate | null> => {
    const stack = await createStackRepository(tx).lockById(stackId);
    return stack ? reclaimExpired(tx, stack, leaseSeconds) : null;
  };
  const updates = createUpdateRepository(db);
  // The locks would delay the batches of a running update, so they are only taken if an end is due. The state under the locks decides.
  const ended = (await updates.isHolderDue(stackId, leaseSeconds)) ? await db.inTransaction(reclaim) : null;
  if (ended) noteEnded({ logger, metrics }, ended);
  if (waitsForLock) await db.inTransaction((tx) => createStackRepository(tx).lockById(stackId));
  const pending = await updates.findWithPendingEntries(stackId);
  if (pending && !isActive(pending.status)) await compact(pending.id);
  if (!admitsFault) await assertNoFault(db, stackId);
}

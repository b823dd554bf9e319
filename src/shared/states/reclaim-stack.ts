import { assertNoFault } from '../journal/journal-fault.ts';
import type { Database } from '../platform/db/database.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import { type ExpiredUpdate, reclaimExpired } from '../updates/update-closer.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';

/**
 * Makes a stack ready for its next change: an update whose lease is over is ended, and the journal of an ended one is
 * compacted by `compact`, so that the head is whole. A live update goes on, for one more lease at most without being renewed.
 * Returns the update that it ended. Throws JournalFaultError while the head lacks entries that could not be replayed, unless the
 * change `admitsFault`.
 */
export async function reclaimStack(
  db: Database,
  stackId: string,
  leaseSeconds: number,
  compact: (updateId: string) => Promise<void>,
  { admitsFault = false }: { readonly admitsFault?: boolean } = {},
): Promise<ExpiredUpdate | null> {
  const ended = await db.inTransaction(async (tx) => {
    const stack = await createStackRepository(tx).lockById(stackId);
    return stack ? reclaimExpired(tx, stack, leaseSeconds) : null;
  });
  const pending = await createUpdateRepository(db).findWithPendingEntries(stackId);
  if (pending && !isActive(pending.status)) await compact(pending.id);
  if (!admitsFault) await assertNoFault(db, stackId);
  return ended;
}

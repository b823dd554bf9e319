import type { Database } from '../../platform/db/database.ts';
import { ForbiddenError } from '../../platform/errors/errors.ts';
import type { LeaseFence } from '../../updates/lease.ts';
import type { BatchEntry } from '../journal-batch.ts';
import { type Appended, createJournalRepository } from '../journal-repository.ts';
import { readBegin, refusedEntry } from './begin-entry.ts';
import { createGuardRepository, type Stop } from './guard-repository.ts';

/**
 * The update may begin nothing more. Everything else in the batch is stored. The CLI shows the message at each resource of the batch,
 * calls no provider for those that were about to begin, and ends the update as failed.
 */
export class BeginRefusedError extends ForbiddenError {
  override readonly name = 'BeginRefusedError';
  override readonly code = 'begin-refused';
}

/** What became of a batch of a guarded update. */
export interface GuardedAppend {
  readonly appended: Appended;
  /** Null if nothing was refused. */
  readonly refusal: Stop | null;
}

/**
 * Stores a batch of an update that has a guard, in one transaction that holds the lock of all its batches. If anything that the batch
 * begins is refused, so is all that it begins, because the client gets one response for the batch; the rest is stored. A repeated batch
 * gets the same response: what was stored had been accepted, and what was refused is known by its entry. Returns null if the lease is
 * invalid.
 */
export async function appendGuarded(
  db: Database,
  fence: LeaseFence,
  entries: readonly BatchEntry[],
): Promise<GuardedAppend | null> {
  const begins = await Promise.all(entries.filter(({ isBegin }) => isBegin).map(readBegin));
  return db.inTransaction(async (tx) => {
    const guards = createGuardRepository(tx);
    if (!(await guards.lockJournal(fence))) return null;
    const guard = await guards.find(fence.updateId);
    const stored = await guards.findStored(
      fence.updateId,
      begins.map(({ sequenceId }) => sequenceId),
    );
    const known = new Set(stored.map(({ sequenceId }) => sequenceId));
    const newBegins = begins.filter(({ sequenceId }) => !known.has(sequenceId));
    const stop =
      guard && guard.stopReason !== null && guard.stopMessage !== null
        ? { reason: guard.stopReason, message: guard.stopMessage }
        : null;
    const refused = new Map(stop ? newBegins.map((begin) => [begin.sequenceId, refusedEntry(begin)]) : []);
    const accepted = entries.map((entry) => (entry.isBegin && refused.get(entry.sequenceId)) || entry);
    const appended = await createJournalRepository(tx).append(fence, accepted, true);
    // Rolls back nothing that matters: only locks were taken.
    if (!appended) return null;
    const isRefused = refused.size > 0 || stored.some((entry) => entry.isRefused);
    return { appended, refusal: isRefused ? stop : null };
  });
}

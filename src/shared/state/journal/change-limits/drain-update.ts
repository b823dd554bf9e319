import type { Queryable } from '../../../platform/db/sql.ts';
import { ConflictError } from '../../../platform/errors/errors.ts';
import type { LockedUpdate } from '../../../updates/locked-update-repository.ts';
import { isActive } from '../../../updates/update-state.ts';
import { createChangeLimitRepository } from './change-limit-repository.ts';

export interface Drain {
  readonly by: string;
  /** Empty if no reason was given. */
  readonly reason: string;
}

/**
 * The update is locked. From the commit on, it begins no more operations. Running operations continue and are saved; then its client ends
 * the update. Returns false if the update was stopped before. Throws ConflictError if it does not run, or if it sends no journal, so that
 * its operations are unknown.
 */
export async function drainUpdate(tx: Queryable, { update }: LockedUpdate, drain: Drain): Promise<boolean> {
  if (!isActive(update.status)) throw new ConflictError('This update has ended');
  if (update.status !== 'running') {
    throw new ConflictError('This update has not started yet: drain it when it runs, or cancel it');
  }
  if (update.journalVersion === 0) {
    throw new ConflictError(
      'This update sends no journal, so what it is about to begin is not known here. Cancel it, or wait for its end',
    );
  }
  const changeLimits = createChangeLimitRepository(tx);
  if ((await changeLimits.find(update.id))?.stop) return false;
  await changeLimits.stop(update.id, { reason: 'drain', message: drainMessage(drain) });
  await changeLimits.enforce(update.id);
  return true;
}

function drainMessage({ by, reason }: Drain): string {
  const because = reason === '' ? '' : ` (${reason})`;
  return `${by} drains this update${because}: it begins no more operations, and running ones are finished and saved. Run it again to continue`;
}

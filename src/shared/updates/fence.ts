import { type Static, Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

/** The scope of an admitted execution-phase call: one update, in the epoch in which the call was admitted. */
export const LeaseFence = Type.Object({ updateId: Type.String(), stackId: Type.String(), epoch: Type.Integer() });
export type LeaseFence = Readonly<Static<typeof LeaseFence>>;

/** The condition that the update `u` of the fence runs in the same epoch, with a valid lease. */
export const fenceHolds = ({ updateId, epoch }: Pick<LeaseFence, 'updateId' | 'epoch'>) => sql.fragment`
  u.id = ${updateId} and u.status = 'running' and u.epoch = ${epoch} and u.expires_at > clock_timestamp()`;

/** The same condition for an update that was read before. */
export function isHeld(
  update: { readonly status: string; readonly expired: boolean; readonly epoch: number },
  fence: LeaseFence,
): boolean {
  return update.status === 'running' && !update.expired && update.epoch === fence.epoch;
}

/** The fence no longer held at a later statement of a transaction. */
export class FenceError extends Error {
  override readonly name = 'FenceError';
}

/** Runs `work` in a transaction. Returns null if it throws FenceError, which rolls back all of its statements. */
export async function whileFenceHolds<T>(db: Queryable, work: (tx: Queryable) => Promise<T>): Promise<T | null> {
  try {
    return await db.transaction(work);
  } catch (error) {
    if (error instanceof FenceError) return null;
    throw error;
  }
}

import { type Static, Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

/** The scope of an admitted execution-phase call: one update, in the epoch in which the call was admitted. */
export const LeaseFence = Type.Object({ updateId: Type.String(), stackId: Type.String(), epoch: Type.Integer() });
export type LeaseFence = Readonly<Static<typeof LeaseFence>>;

/** The update `u` runs in the epoch of the fence, with a valid lease. */
export const fenceHolds = ({ updateId, epoch }: Pick<LeaseFence, 'updateId' | 'epoch'>) => sql.fragment`
  u.id = ${updateId} and u.status = 'running' and u.epoch = ${epoch} and u.expires_at > clock_timestamp()`;

/** The same condition for an update that was read before. */
export function isHeld(
  update: { readonly status: string; readonly expired: boolean; readonly epoch: number },
  fence: LeaseFence,
): boolean {
  return update.status === 'running' && !update.expired && update.epoch === fence.epoch;
}

export class FenceError extends Error {
  override readonly name = 'FenceError';
}

/** FenceError rolls back the whole transaction and makes the result null. */
export async function whileFenceHolds<T>(db: Queryable, work: (tx: Queryable) => Promise<T>): Promise<T | null> {
  try {
    return await db.transaction(work);
  } catch (error) {
    if (error instanceof FenceError) return null;
    throw error;
  }
}

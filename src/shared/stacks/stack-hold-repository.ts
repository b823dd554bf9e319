import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

const HoldRow = Type.Object({ heldAt: Timestamp, heldBy: Type.String(), reason: Type.String() });
export type HoldRow = Row<typeof HoldRow>;

/** A legal hold protects a stack's data from every rule, even after the stack is deleted. */
export function createStackHoldRepository(db: Queryable) {
  return {
    find: (stackId: string) =>
      db.maybeOne(sql.rows(HoldRow)`
        /* stackHolds.find */
        select held_at as "heldAt", held_by as "heldBy", hold_reason as reason from stacks where id = ${stackId} and held_at is not null`),

    /** The stack is locked. Keeps the time of an existing hold. */
    set: (stackId: string, { by, reason }: { readonly by: string; readonly reason: string }) =>
      db.query(sql.nothing`
        /* stackHolds.set */
        update stacks set held_at = coalesce(held_at, clock_timestamp()), held_by = ${by}, hold_reason = ${reason} where id = ${stackId}`),

    /** The stack is locked. */
    release: (stackId: string) =>
      db.query(sql.nothing`
        /* stackHolds.release */
        update stacks set held_at = null, held_by = null, hold_reason = null where id = ${stackId}`),
  };
}

import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const SinceRow = Type.Object({ since: Type.Unsafe<Date>({}) });

/** Whether a restore holds the calls to webhooks and to the receiver of the audit log. */
export function createOutgoingHoldRepository(db: Queryable) {
  return {
    hold: () =>
      db.query(sql.nothing`/* outgoingHold.hold */ update installation set outgoing_held_since = clock_timestamp()`),

    /** Returns since when they were held; null: they were not. */
    release: async (): Promise<Date | null> => {
      const row = await db.maybeOne(sql.rows(SinceRow)`
        /* outgoingHold.release */
        with held as (select outgoing_held_since as since from installation where outgoing_held_since is not null for update)
        update installation set outgoing_held_since = null from held returning held.since`);
      return row?.since ?? null;
    },
  };
}

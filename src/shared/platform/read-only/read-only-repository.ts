import { Type } from 'typebox';
import { type Queryable, sql } from '../db/sql.ts';
import { Nullable, Timestamp } from '../schema/standard-schema.ts';
import type { ReadOnly } from './read-only-mode.ts';

const StatusRow = Type.Object({
  since: Nullable(Timestamp),
  reason: Nullable(Type.String()),
  /** Running, or created but not started. */
  updates: Type.Integer(),
});

export function createReadOnlyRepository(db: Queryable) {
  return {
    find: async (): Promise<{ readonly mode: ReadOnly | null; readonly updates: number }> => {
      const { reason, since, updates } = await db.one(sql.rows(StatusRow)`
        /* readOnly.find */
        select read_only_since as since, read_only_reason as reason,
          (select count(*)::integer from updates where status in ('not started', 'running')) as updates
        from installation`);
      return { mode: since === null || reason === null ? null : { since, reason }, updates };
    },

    /** Also changes the reason. */
    switchOn: (reason: string) =>
      db.query(sql.nothing`
        /* readOnly.switchOn */
        update installation set read_only_since = coalesce(read_only_since, now()), read_only_reason = ${reason}`),

    /** Returns whether the mode was on. */
    switchOff: async (): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* readOnly.switchOff */
        update installation set read_only_since = null, read_only_reason = null where read_only_since is not null`);
      return rowCount > 0;
    },
  };
}

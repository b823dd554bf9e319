import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import type { SeenDatabase } from './rollback-state.ts';

export type DatabaseChange = 'none' | 'unnoted' | 'timeline' | 'replaced' | 'set-back';

const PresentRow = Type.Object({
  change: Type.Unsafe<DatabaseChange>(Type.String()),
  /** Whether the server reports its system identifier and timeline. */
  isKnown: Type.Boolean(),
  losses: Type.Integer(),
  position: Nullable(Type.Integer()),
  lostAt: Nullable(Timestamp),
  readOnlySince: Nullable(Timestamp),
  readOnlyReason: Nullable(Type.String()),
  isOutgoingHeld: Type.Boolean(),
  fencedSince: Nullable(Timestamp),
});

const EndedRow = Type.Object({ ended: Nullable(Type.Integer()) });

/** The functions of the same names in the schema do the work. */
export function createDatabaseIdentityRepository(db: Queryable) {
  return {
    /** `lostAt` covers only the last day. */
    read: (seen: SeenDatabase | null) =>
      db.one(sql.prepared('database_identity_read', PresentRow)`
        /* databaseIdentity.read */
        select database_change(${seen?.losses ?? null}::integer, ${seen?.position ?? null}::bigint) as change,
          n.system_id is not null and n.timeline is not null as "isKnown", i.losses, log_position() as position,
          case when i.lost_at > clock_timestamp() - interval '1 day' then i.lost_at end as "lostAt",
          i.read_only_since as "readOnlySince", i.read_only_reason as "readOnlyReason",
          i.outgoing_held_since is not null as "isOutgoingHeld", i.fenced_since as "fencedSince"
        from installation i, read_database_identity() n`),

    /**
     * All active updates lose their leases if the database is another one, if it is at an earlier point than `seen`, or if `isOrdered` is
     * set. Returns their number; null if there was no reason.
     */
    note: async (isOrdered: boolean, seen: SeenDatabase | null): Promise<number | null> => {
      const row = await db.one(sql.rows(EndedRow)`
        /* databaseIdentity.note */
        select note_database(${isOrdered}, ${seen?.losses ?? null}::integer, ${seen?.position ?? null}::bigint) as ended`);
      return row.ended;
    },
  };
}

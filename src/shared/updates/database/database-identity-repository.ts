import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';

const PresentRow = Type.Object({
  change: Type.Unsafe<'none' | 'unnoted' | 'timeline' | 'replaced'>(Type.String()),
  /** Whether the server tells its system identifier and timeline. */
  isTold: Type.Boolean(),
});

const EndedRow = Type.Object({ ended: Nullable(Type.Integer()) });

/** Which database this is: see the functions of the same names in the schema. */
export function createDatabaseIdentityRepository(db: Queryable) {
  return {
    read: () =>
      db.one(sql.prepared('database_identity_read', PresentRow)`
        /* databaseIdentity.read */
        select database_change() as change, n.system_id is not null and n.timeline is not null as "isTold"
        from read_database_identity() n`),

    /**
     * Notes the identity of the database. If it is another one than before, or `isOrdered`, all active updates lose their leases. Returns
     * how many did; null if there was no reason to end any.
     */
    note: async (isOrdered: boolean): Promise<number | null> => {
      const row = await db.one(sql.rows(EndedRow)`
        /* databaseIdentity.note */ select note_database(${isOrdered}) as ended`);
      return row.ended;
    },
  };
}

import { Type } from 'typebox';
import { type Queryable, type SqlFragment, sql } from '../../platform/db/sql.ts';

export interface CheckClaim {
  /** Rows verified within this time are skipped. */
  readonly periodSeconds: number;
  /** Rows that were claimed but not fully read are due again after this time. */
  readonly claimSeconds: number;
  readonly limit: number;
}

/** Damaged documents are checked again after this time: an operator may have restored them. */
export const damagedPeriodSeconds = 3600;

const IdRow = Type.Object({ id: Type.String() });
const ClaimedRow = Type.Object({ id: Type.String(), storedBytes: Type.Integer() });
export const MarkedRow = Type.Object({ isNew: Type.Boolean() });
/** `oldestSeconds` is the age of the oldest check. */
export const CheckStatisticsRow = Type.Object({ damaged: Type.Integer(), oldestSeconds: Type.Number() });

/** Rows of `table` without bytes are skipped. */
export function createByteCheckRepository(db: Queryable, table: SqlFragment) {
  return {
    /** Claims damaged rows first, then the least recently read. */
    claimChecks: ({ periodSeconds, claimSeconds, limit }: CheckClaim) =>
      db.any(sql.rows(ClaimedRow)`
        /* byteChecks.claimChecks */
        with damaged as materialized (
          select id from ${table}
          where sha256 is not null and damaged_at is not null and checked_at < now() - make_interval(secs => ${damagedPeriodSeconds})
          order by checked_at limit ${limit} for no key update skip locked
        ),
        due as materialized (
          select id from ${table}
          where sha256 is not null and damaged_at is null and checked_at < now() - make_interval(secs => ${periodSeconds})
          order by checked_at limit ${limit} for no key update skip locked
        )
        update ${table} t set checked_at = case when t.damaged_at is null
          then now() - make_interval(secs => ${periodSeconds}) + make_interval(secs => ${claimSeconds}) else now() end
        from (select id from damaged union all select id from due limit ${limit}) c where t.id = c.id
        returning t.id, t.stored_bytes as "storedBytes"`),

    listAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* byteChecks.listAfter */
        select id from ${table} where id > ${after}::uuid and sha256 is not null order by id limit ${limit}`);
      return rows.map(({ id }) => id);
    },

    markIntact: (id: string) =>
      db.query(sql.nothing`
        /* byteChecks.markIntact */ update ${table} set checked_at = now(), damaged_at = null where id = ${id}`),

    readStatistics: () =>
      db.one(sql.rows(CheckStatisticsRow)`
        /* byteChecks.readStatistics */
        select (select count(*)::integer from ${table} where damaged_at is not null) as damaged,
          coalesce((select extract(epoch from now() - checked_at)::float8 from ${table}
            where sha256 is not null order by checked_at limit 1), 0) as "oldestSeconds"`),
  };
}

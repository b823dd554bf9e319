import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const NumberRow = Type.Object({ number: Type.Integer() });
const OrganizationRow = Type.Object({ organizationId: Type.String() });

export function createAuditRetentionRepository(db: Queryable) {
  return {
    /** `month` is its first day (`YYYY-MM-DD`). Returns whether the partition was missing. */
    addPartition: async (month: string): Promise<boolean> => {
      const row = await db.one(sql.rows(Type.Object({ added: Type.Boolean() }))`
        /* auditRetention.addPartition */ select add_audit_partition(${month}::date) as added`);
      return row.added;
    },

    /** Returns the first days of the months from now to `ahead`, and of the oldest month kept for `days`, by the database's clock. */
    readMonths: (ahead: number, days: number) =>
      db.one(sql.rows(Type.Object({ months: Type.Array(Type.String()), keptFrom: Type.String() }))`
        /* auditRetention.readMonths */
        select array(select to_char(date_trunc('month', now() at time zone 'UTC') + make_interval(months => a), 'YYYY-MM-DD')
            from generate_series(0, ${ahead}::integer) a) as months,
          to_char(date_trunc('month', now() at time zone 'UTC' - make_interval(days => ${days})), 'YYYY-MM-DD') as "keptFrom"`),

    /** Returns 0 if there is no event. */
    findLastBefore: async (month: string): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditRetention.findLastBefore */
        select coalesce(max(number), 0) as number from audit_events where occurred_at < ${month}::date::timestamp at time zone 'UTC'`);
      return row.number;
    },

    /** The chains then begin after the batches before the first kept one; see deleteDropped. Returns the number of dropped partitions. */
    dropMonthsBefore: async (month: string): Promise<number> => {
      await db.query(sql.nothing`
        /* auditRetention.setDroppedBefore */
        update audit_chaining set dropped_before = greatest(dropped_before, ${month}::date)`);
      const chains = await db.any(sql.rows(OrganizationRow)`
        /* auditRetention.listDroppable */
        select c.organization_id as "organizationId"
        from audit_chains c join audit_batches b on b.organization_id = c.organization_id and b.batch = c.base_batch + 1
        where b.month < ${month}::date`);
      // One by one, because each statement reads all batches that its chain has to drop.
      for (const { organizationId } of chains)
        await db.query(sql.nothing`
          /* auditRetention.moveBase */
          update audit_chains c set base_batch = b.batch, base_hash = b.hash
          from audit_batches b
          where c.organization_id = ${organizationId} and b.organization_id = ${organizationId} and b.batch = coalesce(
            (select min(k.batch) from audit_batches k
             where k.organization_id = ${organizationId} and k.batch > c.base_batch and k.month >= ${month}::date), c.batch + 1) - 1`);
      // Last, because no event can be added from here until the commit.
      const row = await db.one(sql.rows(Type.Object({ dropped: Type.Integer() }))`
        /* auditRetention.dropMonths */ select drop_audit_months(${month}::date) as dropped`);
      return row.dropped;
    },

    /** Deletes batches before the beginning of their chain, except in these organizations. */
    deleteDropped: async (limit: number, except: readonly string[]): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditRetention.deleteDropped */
        with dropped as (
          select b.organization_id, b.batch from audit_chains c cross join lateral (
            select organization_id, batch from audit_batches where organization_id = c.organization_id and batch <= c.base_batch
            order by batch limit ${limit}) b
          where c.base_batch > 0 and c.organization_id <> all (${sql.array([...except], 'uuid')}) limit ${limit}
        ), deleted as (
          delete from audit_batches where (organization_id, batch) in (select organization_id, batch from dropped) returning 1
        )
        select count(*)::integer as number from deleted`);
      return row.number;
    },
  };
}

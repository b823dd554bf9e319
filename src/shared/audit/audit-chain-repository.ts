import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import { firstHash, type HashedBatch } from './audit-hash.ts';

const StateRow = Type.Object({
  chainedThrough: Type.Integer(),
  horizonThrough: Type.Integer(),
  /** Whether all transactions that may have an event up to the horizon have ended. */
  isReached: Type.Boolean(),
  /** Events before this month were dropped: `YYYY-MM-DD`. */
  droppedBefore: Type.String(),
});

const EventRow = Type.Object({
  number: Type.Integer(),
  organizationId: Type.String(),
  organization: Type.String(),
  action: Type.String(),
  /** `YYYY-MM-01` of the event's time in UTC. */
  month: Type.String(),
  columns: Type.Array(Nullable(Type.String())),
});
export type ChainedEventRow = Row<typeof EventRow>;

const ChainRow = Type.Object({
  organizationId: Type.String(),
  batch: Type.Integer(),
  hash: Bytes,
  baseBatch: Type.Integer(),
  baseHash: Bytes,
});
export type ChainRow = Row<typeof ChainRow>;

const BatchRow = Type.Object({
  organizationId: Type.String(),
  batch: Type.Integer(),
  month: Type.String(),
  throughNumber: Type.Integer(),
  numbers: Type.Array(Type.Integer()),
  eventHashes: Bytes,
  previousHash: Bytes,
  hash: Bytes,
});
export type BatchRow = Row<typeof BatchRow>;

const UnexportedRow = Type.Object({
  organizationId: Type.String(),
  batch: Type.Integer(),
  month: Type.String(),
  numbers: Type.Array(Type.Integer()),
  hash: Bytes,
});
export type UnexportedRow = Row<typeof UnexportedRow>;

/** Where events are exported to: the blob store, or a receiver over HTTPS. */
export type ExportTarget = 'blobs' | 'receiver';

const NumberRow = Type.Object({ number: Type.Integer() });

/** The chains of chained events. */
export function createAuditChainRepository(db: Queryable) {
  const chain = sql.fragment`
    organization_id as "organizationId", batch, hash, base_batch as "baseBatch", base_hash as "baseHash"`;
  const state = sql.fragment`
    chained_through as "chainedThrough", horizon_through as "horizonThrough",
    horizon_xid < pg_snapshot_xmin(pg_current_snapshot()) as "isReached", dropped_before::text as "droppedBefore"`;
  const exported = { blobs: sql.fragment`c.exported_batch`, receiver: sql.fragment`c.sent_batch` };
  return {
    /** The highest number assigned to an event, committed or not. */
    readLastNumber: async (): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditChaining.readLastNumber */
        select case when is_called then last_value else 0 end as number from audit_event_numbers`);
      return row.number;
    },

    /**
     * Lets events up to `through`, read before, be chained once all transactions that are older than this one have ended. Replaces a horizon that is
     * not used up only if another database server set it: its id lies in the future.
     */
    setHorizon: (through: number) =>
      db.query(sql.nothing`
        /* auditChaining.setHorizon */
        update audit_chaining set horizon_through = ${through}, horizon_xid = pg_current_xact_id()
        where chained_through < ${through}
          and (horizon_through <= chained_through or horizon_xid >= pg_snapshot_xmax(pg_current_snapshot()))`),

    readState: () => db.one(sql.rows(StateRow)`/* auditChaining.readState */ select ${state} from audit_chaining`),

    lockState: () =>
      db.one(sql.rows(StateRow)`/* auditChaining.lockState */ select ${state} from audit_chaining for update`),

    setChainedThrough: (through: number) =>
      db.query(
        sql.nothing`/* auditChaining.setChainedThrough */ update audit_chaining set chained_through = ${through}`,
      ),

    /** Events with numbers above `after`, up to `through`, of months from `since` on. */
    listEvents: (range: { readonly after: number; readonly through: number; readonly since: string }, limit: number) =>
      db.any(sql.rows(EventRow)`
        /* auditChaining.listEvents */
        select number, organization_id as "organizationId", organization, action,
          to_char(date_trunc('month', occurred_at at time zone 'UTC'), 'YYYY-MM-DD') as month,
          array[to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), organization, action, outcome, actor,
            user_id::text, login, token_id::text, token_name, sign_in, role, granted_by, address, user_agent, ci_run, object,
            update_id::text, request_id, details] as columns
        from audit_events
        where number > ${range.after} and number <= ${range.through}
          and occurred_at >= ${range.since}::date::timestamp at time zone 'UTC'
        order by number limit ${limit}`),

    /** Locks the organization's chain, which is created if it does not exist. */
    lockChain: async (organizationId: string): Promise<ChainRow> => {
      await db.query(sql.nothing`
        /* auditChaining.insertChain */
        insert into audit_chains (organization_id, batch, hash, base_hash)
        values (${organizationId}, 0, ${sql.binary(firstHash)}, ${sql.binary(firstHash)}) on conflict do nothing`);
      return db.one(sql.rows(ChainRow)`
        /* auditChaining.lockChain */ select ${chain} from audit_chains where organization_id = ${organizationId} for update`);
    },

    insertBatch: async (batch: HashedBatch, hash: Buffer): Promise<void> => {
      await db.query(sql.nothing`
        /* auditChaining.insertBatch */
        insert into audit_batches (organization_id, batch, month, through_number, numbers, event_hashes, previous_hash, hash)
        values (${batch.organizationId}, ${batch.batch}, ${batch.month}::date, ${batch.throughNumber},
          ${sql.array([...batch.numbers], 'int8')}, ${sql.binary(batch.eventHashes)}, ${sql.binary(batch.previousHash)},
          ${sql.binary(hash)})`);
      await db.query(sql.nothing`
        /* auditChaining.extendChain */
        update audit_chains set batch = ${batch.batch}, hash = ${sql.binary(hash)} where organization_id = ${batch.organizationId}`);
    },

    listChains: () =>
      db.any(
        sql.rows(ChainRow)`/* auditChaining.listChains */ select ${chain} from audit_chains order by organization_id`,
      ),

    findChain: (organizationId: string) =>
      db.maybeOne(sql.rows(ChainRow)`
        /* auditChaining.findChain */ select ${chain} from audit_chains where organization_id = ${organizationId}`),

    /** Batches in the order of chaining, after the given one. */
    listBatches: (
      after: { readonly throughNumber: number; readonly organizationId: string; readonly batch: number },
      limit: number,
    ) =>
      db.any(sql.rows(BatchRow)`
        /* auditChaining.listBatches */
        select organization_id as "organizationId", batch, month::text as month, through_number as "throughNumber", numbers,
          event_hashes as "eventHashes", previous_hash as "previousHash", hash
        from audit_batches
        where (through_number, organization_id, batch) > (${after.throughNumber}, ${after.organizationId}::uuid, ${after.batch})
        order by through_number, organization_id, batch limit ${limit}`),

    /** Chains whose last batch has no head in the blob store. */
    listUnstored: ({ except = [], limit }: { readonly except?: readonly string[]; readonly limit: number }) =>
      db.any(sql.rows(ChainRow)`
        /* auditChaining.listUnstored */
        select ${chain} from audit_chains
        where stored_batch < batch and organization_id <> all (${sql.array([...except], 'uuid')}) order by organization_id limit ${limit}`),

    /** Seconds since the oldest event that is not chained yet; 0 if all are. */
    readUnchainedSeconds: async (): Promise<number> => {
      const row = await db.one(sql.rows(Type.Object({ seconds: Type.Number() }))`
        /* auditChaining.readUnchainedSeconds */
        select coalesce(extract(epoch from clock_timestamp() - min(occurred_at)), 0)::float8 as seconds
        from audit_events where number > (select chained_through from audit_chaining)`);
      return row.seconds;
    },

    /** Adds the partition of a month (`YYYY-MM-DD`, its first day). Returns whether it was missing. */
    addPartition: async (month: string): Promise<boolean> => {
      const row = await db.one(sql.rows(Type.Object({ added: Type.Boolean() }))`
        /* auditChaining.addPartition */ select add_audit_partition(${month}::date) as added`);
      return row.added;
    },

    /** Lets DDL wait for a short time only, because statements queued behind it wait as well. */
    limitLockWait: () => db.query(sql.nothing`/* auditChaining.limitLockWait */ set local lock_timeout = '2s'`),

    /** First days of the current month, of the months ahead, and of the oldest month that is kept for `days`. By the database's clock. */
    readMonths: (ahead: number, days: number) =>
      db.one(sql.rows(Type.Object({ months: Type.Array(Type.String()), keptFrom: Type.String() }))`
        /* auditChaining.readMonths */
        select array(select to_char(date_trunc('month', now() at time zone 'UTC') + make_interval(months => a), 'YYYY-MM-DD')
            from generate_series(0, ${ahead}::integer) a) as months,
          to_char(date_trunc('month', now() at time zone 'UTC' - make_interval(days => ${days})), 'YYYY-MM-DD') as "keptFrom"`),

    /** The highest number of an event before the month; 0 if there is none. */
    findLastBefore: async (month: string): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditChaining.findLastBefore */
        select coalesce(max(number), 0) as number from audit_events where occurred_at < ${month}::date::timestamp at time zone 'UTC'`);
      return row.number;
    },

    /**
     * Drops the events of all months before this one, and the batches that no kept batch of the same chain precedes. Returns how many
     * partitions were dropped.
     */
    dropMonthsBefore: async (month: string): Promise<number> => {
      await db.query(sql.nothing`
        /* auditChaining.setDroppedBefore */
        update audit_chaining set dropped_before = greatest(dropped_before, ${month}::date)`);
      const row = await db.one(sql.rows(Type.Object({ dropped: Type.Integer() }))`
        /* auditChaining.dropMonths */ select drop_audit_months(${month}::date) as dropped`);
      await db.query(sql.nothing`
        /* auditChaining.moveBases */
        update audit_chains c set base_batch = b.batch, base_hash = b.hash
        from audit_batches b
        where b.organization_id = c.organization_id and b.batch > c.base_batch and b.batch = coalesce(
          (select min(k.batch) from audit_batches k where k.organization_id = c.organization_id and k.month >= ${month}::date),
          c.batch + 1) - 1`);
      await db.query(sql.nothing`
        /* auditChaining.deleteBatches */
        delete from audit_batches b using audit_chains c
        where c.organization_id = b.organization_id and b.batch <= c.base_batch`);
      return row.dropped;
    },

    /** Batches whose events were not exported to the target yet, in the order of their chains. */
    listUnexported: (
      target: ExportTarget,
      { except = [], limit }: { readonly except?: readonly string[]; readonly limit: number },
    ) =>
      db.any(sql.rows(UnexportedRow)`
        /* auditChaining.listUnexported */
        select b.organization_id as "organizationId", b.batch, b.month::text as month, b.numbers, b.hash
        from audit_chains c join audit_batches b on b.organization_id = c.organization_id and b.batch > ${exported[target]}
        where ${exported[target]} < c.batch and c.organization_id <> all (${sql.array([...except], 'uuid')})
        order by b.organization_id, b.batch limit ${limit}`),

    /** Whether a batch of an earlier month was not exported to the target yet. */
    hasUnexportedBefore: (target: ExportTarget, month: string) =>
      db.exists(sql.rows(NumberRow)`
        /* auditChaining.hasUnexportedBefore */
        select b.batch as number
        from audit_chains c join audit_batches b on b.organization_id = c.organization_id and b.batch > ${exported[target]}
        where ${exported[target]} < c.batch and b.month < ${month}::date`),

    noteExported: (target: ExportTarget, organizationId: string, batch: number) => {
      const last = sql.fragment`greatest(${exported[target]}, ${batch})`;
      const change = target === 'blobs' ? sql.fragment`exported_batch = ${last}` : sql.fragment`sent_batch = ${last}`;
      return db.query(sql.nothing`
        /* auditChaining.noteExported */ update audit_chains c set ${change} where organization_id = ${organizationId}`);
    },

    noteStored: (organizationId: string, batch: number) =>
      db.query(sql.nothing`
        /* auditChaining.noteStored */
        update audit_chains set stored_batch = greatest(stored_batch, ${batch}) where organization_id = ${organizationId}`),
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { mayBeSent } from '../platform/outgoing/held-outgoing-repository.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import { firstHash, type HashedBatch } from './audit-hash.ts';

const StateRow = Type.Object({
  chainedThrough: Type.Integer(),
  horizonThrough: Type.Integer(),
  /** All transactions that may have an event up to the horizon have ended. */
  isReached: Type.Boolean(),
  /** Events before this month were dropped: `YYYY-MM-DD`. */
  droppedBefore: Type.String(),
  /**
   * Events before this month and before `findKeptFrom` are not chained. Same as `droppedBefore`, unless a clock that was ahead has set
   * that.
   */
  chainedFrom: Type.String(),
  /** `droppedBefore` is in the future. This is a fault: retention drops only months that have ended. */
  isDroppedAhead: Type.Boolean(),
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
  /** The newest batch whose head is in the blob store; 0 for none. */
  storedBatch: Type.Integer(),
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

const DroppedRow = Type.Object({ organizationId: Type.String(), baseBatch: Type.Integer() });

const HashRow = Type.Object({ batch: Type.Integer(), hash: Bytes });

const NumberRow = Type.Object({ number: Type.Integer() });

/** Events with numbers above `after`, up to `through`, of months from `since` on. */
export interface EventRange {
  readonly after: number;
  readonly through: number;
  readonly since: string;
}

/** Bytes of an event in an exported batch, without its long columns. */
const eventOverhead = 600;

export function createAuditChainRepository(db: Queryable) {
  const chain = sql.fragment`
    organization_id as "organizationId", batch, hash, base_batch as "baseBatch", base_hash as "baseHash",
    stored_batch as "storedBatch"`;
  const state = sql.fragment`
    chained_through as "chainedThrough", horizon_through as "horizonThrough",
    horizon_xid < pg_snapshot_xmin(pg_current_snapshot()) as "isReached", dropped_before::text as "droppedBefore",
    case when dropped_before > now() at time zone 'UTC' - interval '1 day' then date '0001-01-01' else dropped_before end::text as "chainedFrom",
    dropped_before > now() at time zone 'UTC' as "isDroppedAhead"`;
  const inRange = ({ after, since, through }: EventRange) => sql.fragment`
    number > ${after} and number <= ${through} and occurred_at >= ${since}::date::timestamp at time zone 'UTC'`;
  return {
    /** The event may be uncommitted. */
    readLastNumber: async (): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditChaining.readLastNumber */
        select case when is_called then last_value else 0 end as number from audit_event_numbers`);
      return row.number;
    },

    /**
     * Events up to `through`, read before, may be chained once all transactions older than this one have ended. Replaces a horizon up to
     * which not all events are chained only if another database server set it: its transaction id is then in the future.
     */
    setHorizon: (through: number) =>
      db.query(sql.nothing`
        /* auditChaining.setHorizon */
        update audit_chaining set horizon_through = ${through}, horizon_xid = pg_current_xact_id()
        where chained_through < ${through}
          and (horizon_through <= chained_through or horizon_xid >= pg_snapshot_xmax(pg_current_snapshot()))`),

    readState: () => db.one(sql.rows(StateRow)`/* auditChaining.readState */ select ${state} from audit_chaining`),

    /**
     * Events before this month need not exist: `droppedBefore`, or the earlier month of a batch at which a chain begins. Such a batch was
     * chained after a clock that was ahead had set `droppedBefore`.
     */
    findKeptFrom: async (): Promise<string> => {
      const row = await db.one(sql.rows(Type.Object({ keptFrom: Type.String() }))`
        /* auditChaining.findKeptFrom */
        select least(dropped_before, (
          select min(b.month) from audit_chains c join audit_batches b on b.organization_id = c.organization_id and b.batch = c.base_batch + 1
        ))::text as "keptFrom"
        from audit_chaining`);
      return row.keptFrom;
    },

    lockState: () =>
      db.one(sql.rows(StateRow)`/* auditChaining.lockState */ select ${state} from audit_chaining for update`),

    setChainedThrough: (through: number) =>
      db.query(
        sql.nothing`/* auditChaining.setChainedThrough */ update audit_chaining set chained_through = ${through}`,
      ),

    /** One pass chains at most `events` events of this range, and no more once their rows have about `bytes`. */
    findPassEnd: async (
      range: EventRange,
      { bytes, events }: { readonly bytes: number; readonly events: number },
    ): Promise<number> => {
      const row = await db.one(sql.rows(NumberRow)`
        /* auditChaining.findPassEnd */
        select case when count(*) = ${events} or not bool_and(is_taken) then max(number) filter (where is_taken) else ${range.through} end as number
        from (
          select number, coalesce(sum(bytes) over (order by number rows between unbounded preceding and 1 preceding), 0) < ${bytes} as is_taken
          from (
            select number, ${eventOverhead} + octet_length(details) + octet_length(object) + octet_length(ci_run) + octet_length(user_agent) as bytes
            from audit_events where ${inRange(range)} order by number limit ${events}
          ) e
        ) e`);
      return row.number;
    },

    listEvents: (range: EventRange, limit: number) =>
      db.any(sql.rows(EventRow)`
        /* auditChaining.listEvents */
        select number, organization_id as "organizationId", organization, action,
          to_char(date_trunc('month', occurred_at at time zone 'UTC'), 'YYYY-MM-DD') as month,
          array[to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), organization, action, outcome, actor,
            user_id::text, login, token_id::text, token_name, sign_in, role, granted_by, address, user_agent, ci_run, object,
            update_id::text, request_id, details] as columns
        from audit_events where ${inRange(range)} order by number limit ${limit}`),

    /** Creates the chain if it does not exist. */
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

    /** Chains with batches before their beginning that are not deleted yet. */
    listDropped: () =>
      db.any(sql.rows(DroppedRow)`
        /* auditChaining.listDropped */
        select organization_id as "organizationId", base_batch as "baseBatch" from audit_chains c
        where base_batch > 0
          and exists (select 1 from audit_batches b where b.organization_id = c.organization_id and b.batch <= c.base_batch)`),

    /** In the order of chaining. */
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

    /** Chains whose last batch has no head in the blob store. None if this database was restored and has not taken over. */
    listUnstored: ({ except = [], limit }: { readonly except?: readonly string[]; readonly limit: number }) =>
      db.any(sql.rows(ChainRow)`
        /* auditChaining.listUnstored */
        select ${chain} from audit_chains
        where stored_batch < batch and ${mayBeSent} and organization_id <> all (${sql.array([...except], 'uuid')}) order by organization_id limit ${limit}`),

    /** Age of the oldest event that is not chained yet; 0 if all are chained. */
    readUnchainedSeconds: async (): Promise<number> => {
      const row = await db.one(sql.rows(Type.Object({ seconds: Type.Number() }))`
        /* auditChaining.readUnchainedSeconds */
        select coalesce(extract(epoch from clock_timestamp() - min(occurred_at)), 0)::float8 as seconds
        from audit_events where number > (select chained_through from audit_chaining)`);
      return row.seconds;
    },

    listHashes: (organizationId: string, batches: readonly number[]) =>
      db.any(sql.rows(HashRow)`
        /* auditChaining.listHashes */
        select batch, hash from audit_batches
        where organization_id = ${organizationId} and batch = any (${sql.array([...batches], 'int8')})`),

    noteStored: (organizationId: string, batch: number) =>
      db.query(sql.nothing`
        /* auditChaining.noteStored */
        update audit_chains set stored_batch = greatest(stored_batch, ${batch}) where organization_id = ${organizationId}`),
  };
}

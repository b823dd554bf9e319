import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';

const DeletedStackRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** The time since the call that deleted the stack. */
  secondsAgo: Type.Number(),
});
export type DeletedStackRow = Row<typeof DeletedStackRow>;

const ChunkRow = Type.Object({ id: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const HistoryBatchRow = Type.Object({
  count: Type.Integer(),
  lastUpdateId: Nullable(Type.String()),
  lastSequence: Nullable(Type.Integer()),
});
const UpdateBatchRow = Type.Object({
  updates: Type.Integer(),
  checkpoints: Type.Integer(),
  journal_snapshots: Type.Integer(),
  event_segments: Type.Integer(),
});

/** Rows may be large. */
export interface BatchBound {
  readonly rows: number;
  /** Stored size. A first row that exceeds it is deleted alone. */
  readonly bytes: number;
}

/** Continue with the rows of `updateIds[0]` above `after`, and all rows of the other updates. */
export interface HistoryCursor {
  readonly updateIds: readonly string[];
  readonly after: number;
}

/** Tables keyed by (update, sequence). */
const histories = {
  engine_events: {
    table: sql.fragment`engine_events`,
    sequence: sql.fragment`sequence`,
    text: sql.fragment`event`,
  },
  journal_entries: {
    table: sql.fragment`journal_entries`,
    sequence: sql.fragment`sequence_id`,
    text: sql.fragment`entry`,
  },
};
export type HistoryTable = keyof typeof histories;

/** Lower than any sequence. */
export const beforeFirstSequence = Number.MIN_SAFE_INTEGER;

/** Call these in a transaction that holds the stack's `lock`. */
export function createDeletedStackRepository(db: Queryable) {
  const dueAt = sql.fragment`coalesce(s.restorable_until, '-infinity'::timestamptz)`;
  const isDue = sql.fragment`s.deleted_at is not null and s.held_at is null and ${dueAt} <= (select clock_timestamp())`;
  return {
    count: async (): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* deletedStacks.count */ select count(*)::integer as count from stacks s where ${isDue}`);
      return row.count;
    },

    /** Deletions that have begun come first. */
    list: (limit: number, skipped: readonly string[] = []) =>
      db.any(sql.rows(DeletedStackRow)`
        /* deletedStacks.list */
        select s.id, o.name as organization, p.name as project, s.name as stack,
          extract(epoch from clock_timestamp() - s.deleted_at)::float8 as "secondsAgo"
        from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where ${isDue} and s.id <> all(${sql.array(skipped, 'uuid')}) order by ${dueAt}, s.deleted_at limit ${limit}`),

    listDue: async (ids: readonly string[]): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* deletedStacks.listDue */ select s.id from stacks s where s.id = any(${sql.array(ids, 'uuid')}) and ${isDue}`);
      return rows.map(({ id }) => id);
    },

    /**
     * Makes the stack unrestorable and its secrets undecryptable. Returns false if it may be restored, is gone, or is locked. Clears the
     * pointer, so that deleting checkpoints does not touch its row.
     */
    begin: async (id: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* deletedStacks.begin */
        with stack as (select s.id from stacks s where s.id = ${id} and ${isDue} for update skip locked),
        begun as (
          update stacks set restorable_until = null, restorable_in = null, deleted_checkpoint_id = null
          where id in (select id from stack) and (restorable_until is not null or deleted_checkpoint_id is not null)
        ),
        keys as (delete from encryption_keys where stack_id in (select id from stack))
        select id from stack`);
      return row !== null;
    },

    /**
     * Locks the stack's row until the end of the transaction. Returns false if it is gone or locked by another transaction. Also
     * restricts the transaction to index scans: while the statistics lack many new rows, Postgres would read and sort all remaining rows
     * for each batch.
     */
    lock: async (id: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* deletedStacks.lock */
        select id, set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true),
          set_config('enable_sort', 'off', true)
        from stacks where id = ${id} and deleted_at is not null and restorable_until is null for update skip locked`);
      return row !== null;
    },

    /**
     * Lists updates, newest first: updates refer to checkpoints of older ones, so nothing refers to an update's checkpoints at its turn.
     */
    listUpdates: async (stackId: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* deletedStacks.listUpdates */
        select id from updates where stack_id = ${stackId} order by number desc limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Without the cursor, each batch would scan the index entries of all rows deleted before. */
    deleteHistory: async (
      name: HistoryTable,
      cursor: HistoryCursor,
      bound: BatchBound,
    ): Promise<{ count: number; last: { updateId: string; sequence: number } | null }> => {
      const { table, sequence, text } = histories[name];
      const row = await db.one(sql.rows(HistoryBatchRow)`
        /* deletedStacks.deleteHistory */
        with next as (
          select h.row_id, u.at, u.id, h.sequence, h.bytes
          from unnest(${sql.array([...cursor.updateIds], 'uuid')}) with ordinality as u (id, at)
          cross join lateral (
            select ctid as row_id, ${sequence} as sequence, pg_column_size(${text}) as bytes from ${table}
            where update_id = u.id and ${sequence} > case when u.at = 1 then ${cursor.after}::bigint else ${beforeFirstSequence}::bigint end
            order by ${sequence} limit ${bound.rows}
          ) h
          limit ${bound.rows}
        ),
        measured as (select *, sum(bytes) over (order by at, sequence) - bytes as bytes_before from next),
        batch as materialized (select * from measured where bytes_before < ${bound.bytes}),
        deleted as (delete from ${table} where ctid = any (array(select row_id from batch)) returning 1),
        last as (select id, sequence from batch order by at desc, sequence desc limit 1)
        select (select count(*)::integer from deleted) as count,
          (select id from last) as "lastUpdateId", (select sequence from last) as "lastSequence"`);
      const { count, lastUpdateId, lastSequence } = row;
      const last =
        lastUpdateId === null || lastSequence === null ? null : { updateId: lastUpdateId, sequence: lastSequence };
      return { count, last };
    },

    /** Deletes only updates without events or entries in rows, with their checkpoints, journal snapshots and archived events. */
    deleteUpdates: (ids: readonly string[]) =>
      db.one(sql.rows(UpdateBatchRow)`
        /* deletedStacks.deleteUpdates */
        with emptied as materialized (
          select u.id from updates u where u.id = any (${sql.array([...ids], 'uuid')})
            and not exists (select 1 from engine_events e where e.update_id = u.id)
            and not exists (select 1 from journal_entries j where j.update_id = u.id)
        ),
        counters as (delete from journals where update_id in (select id from emptied)),
        points as (delete from journal_snapshots where update_id in (select id from emptied) returning 1),
        segments as (delete from event_segments where update_id in (select id from emptied) returning 1),
        states as (delete from checkpoints where update_id in (select id from emptied) returning 1),
        deleted as (delete from updates where id in (select id from emptied) returning 1)
        select (select count(*)::integer from deleted) as updates, (select count(*)::integer from states) as checkpoints,
          (select count(*)::integer from points) as journal_snapshots,
          (select count(*)::integer from segments) as event_segments`),

    /** Deletes checkpoints without an update, i.e. the state with which the stack was created. */
    deleteCheckpoints: async (stackId: string, limit: number): Promise<number> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* deletedStacks.deleteCheckpoints */
        delete from checkpoints where ctid = any (array(select ctid from checkpoints where stack_id = ${stackId} limit ${limit}))
        returning id`);
      return rows.length;
    },

    /** Newest first, because a chunk is newer than the chunks that it needs. */
    deleteChunks: async (stackId: string, limit: number): Promise<number> => {
      const rows = await db.any(sql.rows(ChunkRow)`
        /* deletedStacks.deleteChunks */
        delete from version_chunks where id = any (array(
          select p.id from version_chunks p where p.stack_id = ${stackId} order by p.id desc limit ${limit}))
        returning id`);
      return rows.length;
    },

    deleteFormerNames: async (stackId: string, limit: number): Promise<number> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* deletedStacks.deleteFormerNames */
        delete from former_stack_names
        where ctid = any (array(select ctid from former_stack_names where stack_id = ${stackId} limit ${limit}))
        returning stack_id as id`);
      return rows.length;
    },

    /** Changes of versions go first, then resources. */
    deleteIndexRows: async (stackId: string, limit: number): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* deletedStacks.deleteIndexRows */
        with changes as (
          delete from resource_changes
          where ctid = any (array(select ctid from resource_changes where stack_id = ${stackId} limit ${limit})) returning 1
        ),
        resources as (
          delete from stack_resources
          where ctid = any (array(select ctid from stack_resources where stack_id = ${stackId} limit ${limit})) returning 1
        ),
        due as (delete from state_index_due where stack_id = ${stackId})
        select (select count(*)::integer from changes) + (select count(*)::integer from resources) as count`);
      return row.count;
    },

    deleteDeliveries: async (stackId: string, limit: number): Promise<number> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* deletedStacks.deleteDeliveries */
        delete from webhook_deliveries where ctid = any (array(
          select d.ctid from webhooks w join webhook_deliveries d on d.webhook_id = w.id where w.stack_id = ${stackId} limit ${limit}))
        returning id`);
      return rows.length;
    },

    /** Deletes the stack's row and its data key. Returns false if dependent rows are left. */
    deleteRow: async (id: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* deletedStacks.deleteRow */
        with emptied as materialized (
          select id from stacks s where s.id = ${id}
            and not exists (select 1 from updates u where u.stack_id = s.id)
            and not exists (select 1 from checkpoints c where c.stack_id = s.id)
            and not exists (select 1 from version_chunks p where p.stack_id = s.id)
            and not exists (select 1 from former_stack_names f where f.stack_id = s.id)
            and not exists (select 1 from stack_resources r where r.stack_id = s.id)
            and not exists (select 1 from resource_changes c where c.stack_id = s.id)
            and not exists (select 1 from webhooks w join webhook_deliveries d on d.webhook_id = w.id where w.stack_id = s.id)
        ),
        keys as (delete from encryption_keys where stack_id in (select id from emptied))
        delete from stacks where id in (select id from emptied) returning id`);
      return row !== null;
    },
  };
}

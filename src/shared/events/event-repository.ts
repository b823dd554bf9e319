import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { inBatches, packTexts } from '../platform/db/text-chunks.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { FenceError, fenceHolds, type LeaseFence, whileFenceHolds } from '../updates/fence.ts';
import type { EventFilter } from './segment-index.ts';

const EventRow = Type.Object({
  sequence: Type.Integer(),
  /** Empty if the event has its own `type`. */
  type: Type.String(),
  bytes: Type.Integer(),
  /** Null if larger than requested; `readText` then reads it. */
  event: Nullable(Type.String()),
  /** The archived events are in the direction of reading. */
  hasArchived: Type.Boolean(),
});
export type EventRow = Row<typeof EventRow>;

const ArchivableRow = Type.Object({
  sequence: Type.Integer(),
  type: Type.String(),
  urn: Nullable(Type.String()),
  bytes: Type.Integer(),
  event: Nullable(Type.String()),
});
const TextRow = Type.Object({ text: Type.String() });
const AdmittedRow = Type.Object({ admitted: Type.Integer() });
const CountRow = Type.Object({ count: Type.Integer() });
const HighestRow = Type.Object({ highest: Type.Integer() });

export interface EngineEventText {
  readonly sequence: number;
  /** JSON, as the client sent it. */
  readonly text: string;
  /** Empty if the event has its own `type`. */
  readonly type: string;
  readonly urn: string | null;
}

export interface EventSelection extends EventFilter {
  /** Start after this sequence (-1 for all), or, with `newestFirst`, before it. */
  readonly beyond: number;
  readonly newestFirst: boolean;
}

export type EventRepository = ReturnType<typeof createEventRepository>;

/** Raw text, keyed by (update, sequence), until the events are archived. */
export function createEventRepository(db: Queryable) {
  const insert = async (
    tx: Queryable,
    fence: LeaseFence,
    events: readonly EngineEventText[],
    resourceChanges: string | null,
  ): Promise<boolean> => {
    const [name, lock] =
      resourceChanges === null
        ? (['engine_events_append', sql.fragment`for share of u`] as const)
        : (['engine_events_append_summary', sql.fragment`for update of u`] as const);
    const { bytes, starts, lengths } = packTexts(events.map(({ text }) => Buffer.from(text)));
    const row = await tx.one(sql.prepared(name, AdmittedRow)`
      /* engineEvents.append */
      with locked as materialized (select lock_shared(${fence.updateId})),
      fenced as (
        select u.id from locked, updates u where ${fenceHolds(fence)} ${lock}
      ),
      added as (
        insert into engine_events (update_id, sequence, event, type, urn)
        select f.id, e.sequence, convert_from(substr(${sql.binary(bytes)}::bytea, e.start, e.length), 'UTF8'), e.type, e.urn
        from fenced f, unnest(${sql.array(
          events.map((event) => event.sequence),
          'int8',
        )}, ${sql.array(starts, 'int4')}, ${sql.array(lengths, 'int4')}, ${sql.array(
          events.map((event) => event.type),
          'text',
        )}, ${sql.array(
          events.map((event) => event.urn),
          'text',
        )}) as e (sequence, start, length, type, urn)
        on conflict (update_id, sequence) do nothing
      ),
      summed as (
        update updates u set resource_changes = ${resourceChanges}::text from fenced f
        where u.id = f.id and ${resourceChanges}::text is not null
      )
      select count(*)::integer as admitted from fenced`);
    return row.admitted > 0;
  };

  return {
    /**
     * Skips events that are already stored. Returns false if the lease no longer holds. Takes only a share lock on the update's row, so
     * that events do not wait for journal entries; only a batch with a summary writes to the row.
     */
    append: async (
      fence: LeaseFence,
      events: readonly EngineEventText[],
      resourceChanges: string | null,
    ): Promise<boolean> => {
      const batches = inBatches(events, ({ text }) => text.length);
      if (batches.length === 1) return insert(db, fence, events, resourceChanges);
      const added = await whileFenceHolds(db, async (tx) => {
        for (const [index, batch] of batches.entries())
          if (!(await insert(tx, fence, batch, index === 0 ? resourceChanges : null))) throw new FenceError();
        return true;
      });
      return added ?? false;
    },

    /** Returns as many events as `limit` and `maxBytes` allow, but at least one. */
    list: (
      updateId: string,
      { beyond, newestFirst, types, urn }: EventSelection,
      { limit, maxBytes }: { limit: number; maxBytes: number },
    ) => {
      const [side, order, archived] = newestFirst
        ? [sql.fragment`sequence < ${beyond}`, sql.fragment`sequence desc`, sql.fragment`first_sequence < ${beyond}`]
        : [sql.fragment`sequence > ${beyond}`, sql.fragment`sequence`, sql.fragment`last_sequence > ${beyond}`];
      const ofTypes = types ? sql.fragment`and type = any(${sql.array([...types], 'text')})` : sql.fragment``;
      return db.any(sql.rows(EventRow)`
        /* engineEvents.list */
        select sequence, type, bytes, case when bytes <= ${maxBytes} then event end as event,
          exists (select 1 from event_segments where update_id = ${updateId} and ${archived}) as "hasArchived"
        from (
          select *, sum(bytes) over (order by ${order}) as total
          from (
            select sequence, type, event, octet_length(event) as bytes from engine_events
            where update_id = ${updateId} and ${side} and (${urn}::text is null or urn = ${urn}) ${ofTypes}
            order by ${order} limit ${limit}
          ) next
        ) measured
        where total <= ${maxBytes} or total = bytes
        order by ${order}`);
    },

    /** -1 without rows. */
    findHighest: async (updateId: string): Promise<number> => {
      const row = await db.one(sql.rows(HighestRow)`
        /* engineEvents.findHighest */
        select coalesce(max(sequence), -1) as highest from engine_events where update_id = ${updateId}`);
      return row.highest;
    },

    /** `from` is 1-based. Null if the event is not in a row. */
    readText: async (updateId: string, sequence: number, from: number, chars: number): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(TextRow)`
        /* engineEvents.readText */ select substr(event, ${from}, ${chars}) as text from engine_events
        where update_id = ${updateId} and sequence = ${sequence}`);
      return row?.text ?? null;
    },

    /** The events of an ended update, in order of sequence, limited as in `list`. */
    listArchivable: (updateId: string, after: number, { limit, maxBytes }: { limit: number; maxBytes: number }) =>
      db.any(sql.rows(ArchivableRow)`
        /* engineEvents.listArchivable */
        select sequence, type, urn, bytes, case when bytes <= ${maxBytes} then event end as event
        from (
          select *, sum(bytes) over (order by sequence) as total
          from (
            select sequence, type, urn, event, octet_length(event) as bytes from engine_events
            where update_id = ${updateId} and sequence > ${after} order by sequence limit ${limit}
          ) next
        ) measured
        where total <= ${maxBytes} or total = bytes
        order by sequence`),

    /** Returns the number of deleted rows. */
    deleteArchived: async (updateId: string, first: number, last: number): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* engineEvents.deleteArchived */
        with deleted as (
          delete from engine_events where update_id = ${updateId} and sequence between ${first} and ${last} returning 1
        )
        select count(*)::integer as count from deleted`);
      return row.count;
    },
  };
}

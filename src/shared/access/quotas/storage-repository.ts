import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import { createKeptBytesRepository, settlingSeconds } from './kept-bytes-repository.ts';

const IdRow = Type.Object({ id: Type.String() });
const StorageRow = Type.Object({
  organization: Type.String(),
  stacks: Type.Integer(),
  stateBytes: Type.Number(),
  journalBytes: Type.Number(),
  eventBytes: Type.Number(),
  packBytes: Type.Number(),
  bytes: Type.Number(),
  measuredAt: Timestamp,
  /** About 30 days before; null if there was no measurement. */
  bytesBefore: Nullable(Type.Number()),
});
export type StorageRow = Row<typeof StorageRow>;

const NewestRow = Type.Object({
  organization: Type.String(),
  stateBytes: Type.Number(),
  journalBytes: Type.Number(),
  eventBytes: Type.Number(),
  packBytes: Type.Number(),
});

const SettledRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  states: Type.Number(),
  journals: Type.Number(),
  events: Type.Number(),
});

const DayRow = Type.Object({
  day: Type.String(),
  stateBytes: Type.Number(),
  journalBytes: Type.Number(),
  eventBytes: Type.Number(),
});

const TableRow = Type.Object({ name: Type.String(), bytes: Type.Number(), rows: Type.Number() });
const DatabaseRow = Type.Object({ bytes: Type.Number() });

/** Minimum age of a measurement before the next one, after a change; also at least 100 times its duration. */
const everySeconds = 60;
/** The same without a change. */
const idleSeconds = 3600;
const comparedDays = 30;
const keptDays = 400;

type Fragment = ReturnType<typeof sql.fragment>;

/** Counts live stacks, from few rows. */
export const countStacks = (organizationId: Fragment): Fragment => sql.fragment`
  coalesce((select sum(n.stacks) from stack_counts n where n.organization_id = ${organizationId}), 0)::integer`;

/** For a version `v` of a policy pack. */
export const packVersionBytes = sql.fragment`coalesce(v.stored_bytes, 0) + pg_column_size(v.description)`;

/** Joins the pack bytes of the organization `o`, in one pass over all packs. */
const packs = sql.fragment`
  left join (
    select p.organization_id, sum(${packVersionBytes})::bigint as bytes
    from policy_packs p join policy_pack_versions v on v.pack_id = p.id group by 1) k on k.organization_id = o.id`;

/** The bytes of the organization `o` have not changed since the measurement, and do not change in the background. */
const isSettled = (measuredAt: Fragment): Fragment => sql.fragment`(
  not exists (select 1 from updates u where u.organization_id = o.id and u.status in ('not started', 'running'))
  and not exists (
    select 1 from stack_changes c where c.organization_id = o.id
      and c.changed_at > ${measuredAt} - make_interval(secs => ${settlingSeconds}::int)))`;

/** Kept bytes are measured soon after changes. */
export function createStorageRepository(db: Queryable) {
  const total = (row: 'n' | 'b') =>
    row === 'n'
      ? sql.fragment`(n.state_bytes + n.journal_bytes + n.event_bytes + coalesce(k.bytes, 0))`
      : sql.fragment`(b.state_bytes + b.journal_bytes + b.event_bytes + coalesce(k.bytes, 0))`;
  return {
    listDue: async (limit: number, skipped: readonly string[] = []): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* storage.listDue */
        select o.id from organizations o
        left join lateral (
          select measured_at, took_ms, state_bytes + journal_bytes + event_bytes as kept from organization_storage
          where organization_id = o.id order by day desc limit 1) m on true
        where o.id <> all(${sql.array(skipped, 'uuid')}) and (m.measured_at is null
          or m.measured_at <= clock_timestamp() - make_interval(secs => greatest(m.took_ms / 10.0, case
            when not ${isSettled(sql.fragment`m.measured_at`)}
              or exists (select 1 from stack_storage k where k.organization_id = o.id and k.measured_at = '-infinity')
              or m.kept <> (
                select coalesce(sum(n.state_bytes + n.journal_bytes + n.event_bytes), 0) from stack_counts n
                where n.organization_id = o.id)
            then ${everySeconds}::int else ${idleSeconds}::int end))
          or m.measured_at > clock_timestamp() + interval '1 hour')
        order by m.measured_at nulls first limit ${limit}`);
      return rows.map(({ id }) => id);
    },

    /** `isWhole` reads all stacks. Throws the reason of `signal`. */
    measure: async (organizationId: string, signal?: AbortSignal, isWhole = false): Promise<void> => {
      const last = isWhole
        ? sql.fragment`null::timestamptz`
        : sql.fragment`(
            select max(measured_at) from organization_storage where organization_id = ${organizationId} and measured_at <= clock_timestamp())`;
      const { at, kept, tookMs } = await createKeptBytesRepository(db).measure(organizationId, last, signal);
      await db.query(sql.nothing`
        /* storage.measure */
        insert into organization_storage as o (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at, took_ms)
        values (${organizationId}, (clock_timestamp() at time zone 'UTC')::date, ${kept.states}, ${kept.journals}, ${kept.events},
          ${at}::timestamptz, coalesce(${tookMs}::int, 0))
        on conflict (organization_id, day) do update set state_bytes = excluded.state_bytes, journal_bytes = excluded.journal_bytes,
          event_bytes = excluded.event_bytes, measured_at = excluded.measured_at, took_ms = coalesce(${tookMs}::int, o.took_ms)`);
      await db.query(sql.nothing`
        /* storage.deleteAhead */
        delete from organization_storage where organization_id = ${organizationId}
          -- Of a clock that was ahead.
          and day > (clock_timestamp() at time zone 'UTC')::date`);
    },

    /** Nothing shows these measurements any more. */
    deleteOld: (organizationId: string) =>
      db.query(sql.nothing`
        /* storage.deleteOld */
        delete from organization_storage where organization_id = ${organizationId}
          and day < (clock_timestamp() at time zone 'UTC')::date - ${keptDays}::int`),

    /** The last measurements since which nothing has changed. */
    listSettled: (organizationId: string | null) =>
      db.any(sql.rows(SettledRow)`
        /* storage.listSettled */
        select o.id, o.name as organization, n.state_bytes::float8 as states, n.journal_bytes::float8 as journals,
          n.event_bytes::float8 as events
        from organizations o cross join lateral (
          select * from organization_storage s where s.organization_id = o.id order by s.day desc limit 1) n
        where ${organizationId === null ? sql.fragment`true` : sql.fragment`o.id = ${organizationId}`}
          and ${isSettled(sql.fragment`n.measured_at`)}
        order by o.name`),

    /** The largest first. Includes the current bytes of policy packs. */
    list: (after: { readonly bytes: number; readonly organization: string } | null, limit: number) =>
      db.any(sql.rows(StorageRow)`
        /* storage.list */
        select o.name as organization,
          ${countStacks(sql.fragment`o.id`)} as stacks,
          n.state_bytes::float8 as "stateBytes", n.journal_bytes::float8 as "journalBytes", n.event_bytes::float8 as "eventBytes",
          coalesce(k.bytes, 0)::float8 as "packBytes", ${total('n')}::float8 as bytes, n.measured_at as "measuredAt",
          (select ${total('b')}::float8 from organization_storage b
           where b.organization_id = o.id and b.day <= n.day - ${comparedDays}::int order by b.day desc limit 1) as "bytesBefore"
        from organizations o cross join lateral (
          select * from organization_storage s where s.organization_id = o.id order by s.day desc limit 1) n
          ${packs}
        where ${
          after === null
            ? sql.fragment`true`
            : sql.fragment`(${total('n')} < ${after.bytes}::bigint or ${total('n')} = ${after.bytes}::bigint and o.name > ${after.organization})`
        }
        order by ${total('n')} desc, o.name limit ${limit}`),

    /** For the organizations that keep the most. */
    listNewest: (limit: number) =>
      db.any(sql.rows(NewestRow)`
        /* storage.listNewest */
        select o.name as organization, n.state_bytes::float8 as "stateBytes", n.journal_bytes::float8 as "journalBytes",
          n.event_bytes::float8 as "eventBytes", coalesce(k.bytes, 0)::float8 as "packBytes"
        from organizations o cross join lateral (
          select * from organization_storage s where s.organization_id = o.id order by s.day desc limit 1) n
          ${packs}
        order by ${total('n')} desc, o.name limit ${limit}`),

    /** Sums all organizations. */
    listDays: (days: number) =>
      db.any(sql.rows(DayRow)`
        /* storage.listDays */
        select day::text as day, sum(state_bytes)::float8 as "stateBytes", sum(journal_bytes)::float8 as "journalBytes",
          sum(event_bytes)::float8 as "eventBytes"
        from organization_storage where day > (statement_timestamp() at time zone 'UTC')::date - ${days}::int group by day order by day`),

    /** Skips days without a measurement. */
    listDaysOf: (organization: string, days: number) =>
      db.any(sql.rows(DayRow)`
        /* storage.listDaysOf */
        select s.day::text as day, s.state_bytes::float8 as "stateBytes", s.journal_bytes::float8 as "journalBytes",
          s.event_bytes::float8 as "eventBytes"
        from organizations o join organization_storage s on s.organization_id = o.id
        where o.name = ${organization} and s.day > (statement_timestamp() at time zone 'UTC')::date - ${days}::int order by s.day`),

    /** The largest first, with their indexes. The number of rows is an estimate. */
    listTables: (limit: number) =>
      db.any(sql.rows(TableRow)`
        /* storage.listTables */
        select c.relname as name, sum(pg_total_relation_size(coalesce(i.inhrelid, c.oid)))::float8 as bytes,
          greatest(0, sum(coalesce(ci.reltuples, c.reltuples)))::float8 as rows
        from pg_class c left join pg_inherits i on i.inhparent = c.oid left join pg_class ci on ci.oid = i.inhrelid
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        group by c.relname order by 2 desc limit ${limit}`),

    readDatabaseBytes: async (): Promise<number> => {
      const row = await db.one(sql.rows(DatabaseRow)`
        /* storage.readDatabaseBytes */ select pg_database_size(current_database())::float8 as bytes`);
      return row.bytes;
    },
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { createUpdateQueueProcessRepository } from './update-queue-process-repository.ts';

const QueueEntryRow = Type.Object({
  id: Type.String(),
  number: Type.Integer(),
  /** Seconds since the arrival of the call. */
  waitedSeconds: Type.Number(),
  /** JSON text. */
  supersededBy: Nullable(Type.String()),
});
export type QueueEntryRow = Row<typeof QueueEntryRow>;

const NextRow = Type.Object({
  id: Type.String(),
  stackId: Type.String(),
  /** An update whose lease has expired still holds the stack. */
  isExpired: Type.Boolean(),
});

const HolderRow = Type.Object({
  kind: Type.String(),
  login: Nullable(Type.String()),
  tokenName: Nullable(Type.String()),
  createdAt: Timestamp,
  /** JSON text. */
  ciRun: Nullable(Type.String()),
});
export type HolderRow = Row<typeof HolderRow>;

const SupersedingRow = Type.Object({ supersededBy: Nullable(Type.String()) });
const GivenIdRow = Type.Object({ id: Type.String() });
const IdRow = Type.Object({ id: Nullable(Type.String()) });
const AdmissionRow = Type.Object({ tags: Type.String(), waitSeconds: Type.Integer() });
const WaitedRow = Type.Object({ waitedMs: Type.Integer() });
const CountRow = Type.Object({ count: Type.Integer() });
const PositionRow = Type.Object({ position: Type.Integer() });

/** The payload is the id of a queue entry whose call may continue. */
export const updateQueueChannel = 'holdfast_update_queue';
/** Precedes, on the same channel, the id of an organization whose rules have changed. */
export const rulesMessage = 'rules:';
/** Precedes the id of an organization in which fewer updates run and a limit defers calls. */
export const heldMessage = 'held:';
/** Precedes the id of a queue entry whose position a newer run has taken. */
export const supersededMessage = 'superseded:';

/** The facts by which newer runs may supersede a waiting one. */
export interface WaitingRun {
  /** Identifies runs that supersede each other. */
  readonly series: string;
  readonly commit: string;
  readonly url: string | null;
  /** The pipeline in which `build` counts; null if only the order of arrival decides. */
  readonly builds: string | null;
  readonly build: number | null;
}

export interface RunView {
  readonly kind: string;
  readonly commit: string | null;
  readonly branch: string | null;
  readonly url: string | null;
}

/** Terms as of the arrival in the queue. */
export interface WaitTerms {
  /** JSON text. */
  readonly tags: string;
  readonly waitSeconds: number;
}

/** A run of a newer commit superseded the run, or a user evicted it. */
export type QueueLoss =
  | { readonly commit: string; readonly url: string | null }
  | { readonly evictedBy: string; readonly reason: string };

function readLoss(json: string | null): QueueLoss | null {
  return json === null ? null : (JSON.parse(json) as QueueLoss);
}

interface WaiterOwner {
  readonly stackId: string;
  readonly tokenId: string;
  readonly processId: string;
}

/** More than one call checks again, because several updates may have ended. */
const firstHeld = 4;

export type UpdateQueueRepository = ReturnType<typeof createUpdateQueueRepository>;

/** Calls wait for a stack in order of arrival. All times are by the database's clock. */
export function createUpdateQueueRepository(db: Queryable) {
  // The condition of first_lock_waiter, for a queue entry `w` of process `p`.
  const counts = sql.fragment`w.superseded_by is null and p.alive_until > clock_timestamp()`;
  const order = sql.fragment`not w.is_urgent, w.number`;
  const waited = sql.fragment`extract(epoch from clock_timestamp() - arrived_at)::float8 as "waitedSeconds"`;
  return {
    ...createUpdateQueueProcessRepository(db),

    /** Joins the end of the queue, or takes the position of older runs of the same series. */
    join: async ({
      id,
      isUrgent,
      processId,
      run,
      shown,
      stackId,
      supersedes,
      tags,
      tokenId,
      waitSeconds,
    }: WaitTerms &
      WaiterOwner & {
        readonly id: string;
        readonly isUrgent: boolean;
        readonly run: WaitingRun | null;
        readonly shown: RunView;
        readonly supersedes: boolean;
      }) => {
      const entry = await db.one(sql.rows(QueueEntryRow)`
        /* updateQueue.join */
        insert into update_queue_waiters (id, stack_id, token_id, process_id, kept_until, is_urgent, run, shown, tags, wait_seconds)
        values (${id}, ${stackId}, ${tokenId}, ${processId}, clock_timestamp(), ${isUrgent}, ${run && JSON.stringify(run)}::jsonb,
          ${JSON.stringify(shown)}::jsonb, ${tags}, ${waitSeconds})
        returning id, number, superseded_by::text as "supersededBy", ${waited}`);
      if (!run || !supersedes) return entry;
      const by = JSON.stringify({ commit: run.commit, url: run.url });
      await db.query(sql.nothing`
        /* updateQueue.supersede */
        with older as (
          update update_queue_waiters w set superseded_by = ${by}::jsonb
          where w.stack_id = ${stackId} and w.number < ${entry.number} and w.superseded_by is null
            and w.run ->> 'series' = ${run.series} and w.run ->> 'commit' <> ${run.commit}
            -- The number of its build says that it is the newer one.
            and not coalesce(w.run ->> 'builds' = ${run.builds} and (w.run ->> 'build')::bigint > ${run.build}, false)
          returning w.id)
        select notify_update_queue(${supersededMessage} || id) from older`);
      return entry;
    },

    /** Returns whether the call was still waiting. */
    evict: async (
      id: string,
      stackId: string,
      by: { readonly login: string; readonly reason: string },
    ): Promise<boolean> => {
      const loss: QueueLoss = { evictedBy: by.login, reason: by.reason };
      const rows = await db.any(sql.rows(GivenIdRow)`
        /* updateQueue.evict */
        with gone as (
          update update_queue_waiters set superseded_by = ${JSON.stringify(loss)}::jsonb
          where id = ${id} and stack_id = ${stackId} and superseded_by is null returning id, stack_id)
        select gone.id, notify_update_queue(${supersededMessage} || gone.id)::text as notified from gone`);
      return rows.length > 0;
    },

    findLoss: async (id: string): Promise<QueueLoss | null> => {
      const row = await db.maybeOne(sql.rows(SupersedingRow)`
        /* updateQueue.findLoss */ select superseded_by::text as "supersededBy" from update_queue_waiters where id = ${id}`);
      return readLoss(row?.supersededBy ?? null);
    },

    findWaitTerms: (id: string, { stackId, tokenId }: Omit<WaiterOwner, 'processId'>): Promise<WaitTerms | null> =>
      db.maybeOne(sql.rows(AdmissionRow)`
        /* updateQueue.findWaitTerms */
        select tags, wait_seconds as "waitSeconds" from update_queue_waiters
        where id = ${id} and stack_id = ${stackId} and token_id = ${tokenId} and tags is not null and wait_seconds is not null`),

    /** Returns null if the entry was lost or belongs to another caller. */
    resume: (id: string, { stackId, tokenId, processId }: WaiterOwner) =>
      db.maybeOne(sql.rows(QueueEntryRow)`
        /* updateQueue.resume */
        update update_queue_waiters set process_id = ${processId}
        where id = ${id} and stack_id = ${stackId} and token_id = ${tokenId} and (process_id is not null or kept_until > clock_timestamp())
        returning id, number, superseded_by::text as "supersededBy", ${waited}`),

    /** Notifies webhooks once per entry. */
    notifyOfLate: (ids: readonly string[]) =>
      db.query(sql.nothing`
        /* updateQueue.notifyOfLate */
        with late as (
          update update_queue_waiters set is_late_notified = true
          where id = any (${sql.array([...ids], 'uuid')}) and not is_late_notified and superseded_by is null returning *)
        select notify_webhooks(p.organization_id, w.stack_id, null, 'update_waiting', 'holdfast', json_build_object(
          'text', format('%s has waited for %s min, %s before it', coalesce(a.login, t.kind || ':' || t.name, 'a token'),
            round(extract(epoch from clock_timestamp() - w.arrived_at) / 60), ahead.count),
          'waitedSeconds', round(extract(epoch from clock_timestamp() - w.arrived_at)), 'ahead', ahead.count,
          'heldBy', s.active_update_id, 'commit', w.run ->> 'commit', 'ciUrl', w.run ->> 'url')::text)
        from late w join stacks s on s.id = w.stack_id join projects p on p.id = s.project_id join api_tokens t on t.id = w.token_id
        left join users a on a.id = t.user_id
        cross join lateral (
          select count(*) from update_queue_waiters o where o.stack_id = w.stack_id and o.superseded_by is null and o.number < w.number) ahead`),

    /** Returns false if webhooks were notified before. */
    noteFreeze: async (id: string): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* updateQueue.noteFreeze */ update update_queue_waiters set is_freeze_notified = true where id = ${id} and not is_freeze_notified`);
      return result.rowCount > 0;
    },

    /** For a client that was asked to call again. */
    keep: (id: string, processId: string, seconds: number) =>
      db.query(sql.nothing`
        /* updateQueue.keep */
        update update_queue_waiters set process_id = null, kept_until = clock_timestamp() + make_interval(secs => ${seconds})
        where id = ${id} and process_id = ${processId}`),

    /** If the stack is free, wakes the first call, because this entry may have been the first. */
    leave: (id: string, stackId: string) =>
      db.query(sql.nothing`
        /* updateQueue.leave */
        with gone as (delete from update_queue_waiters where id = ${id} returning stack_id)
        select notify_update_queue(first.id::text) from (
          select w.id from update_queue_waiters w join update_queue_processes p on p.id = w.process_id
          where w.stack_id = ${stackId} and w.id <> ${id} and ${counts} order by ${order} limit 1) first
        where exists (select 1 from gone)
          and exists (select 1 from stacks where id = ${stackId} and active_update_id is null)`),

    /** Finds the first entry for which a call is waiting. */
    findFirst: async (stackId: string): Promise<string | null> => {
      const { id } = await db.one(
        sql.rows(IdRow)`/* updateQueue.findFirst */ select first_lock_waiter(${stackId}) as id`,
      );
      return id;
    },

    /** Null for no limit. Returns whether it is new. */
    noteLimit: async (id: string, limit: { organizationId: string; key: string } | null): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* updateQueue.noteLimit */
        update update_queue_waiters set organization_id = ${limit?.organizationId ?? null}, held_by = ${limit?.key ?? null}
        where id = ${id} and held_by is distinct from ${limit?.key ?? null}`);
      return result.rowCount > 0;
    },

    /** Lists this process's entries that are among the first deferred by their limits. */
    listFirstHeld: async (processId: string): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(GivenIdRow)`
        /* updateQueue.listFirstHeld */
        select first.id from (
          select distinct organization_id, held_by from update_queue_waiters where process_id = ${processId} and held_by is not null) own
        cross join lateral (
          select h.id from update_queue_waiters_held_by(own.organization_id, own.held_by) h order by h.running, h.number limit ${firstHeld}) first
        join update_queue_waiters w on w.id = first.id where w.process_id = ${processId}`);
      return rows.map(({ id }) => id);
    },

    /** Returns the waiting time in ms; null if a newer run has superseded the call. */
    take: async (id: string): Promise<number | null> => {
      const row = await db.maybeOne(sql.rows(WaitedRow)`
        /* updateQueue.take */
        delete from update_queue_waiters where id = ${id} and superseded_by is null
        returning floor(1000 * extract(epoch from clock_timestamp() - arrived_at))::integer as "waitedMs"`);
      return row?.waitedMs ?? null;
    },

    /** Needed if a notification was lost. */
    listNext: (processId: string, stackIds: readonly string[]) =>
      db.any(sql.rows(NextRow)`
        /* updateQueue.listNext */
        select first.id, s.id as "stackId", s.active_update_id is not null as "isExpired"
        from stacks s cross join lateral (
          select w.id, w.process_id from update_queue_waiters w join update_queue_processes p on p.id = w.process_id
          where w.stack_id = s.id and ${counts} order by ${order} limit 1) first
        where s.id = any (${sql.array([...stackIds], 'uuid')}) and first.process_id = ${processId}
          and not exists (select 1 from updates u where u.id = s.active_update_id and u.expires_at > clock_timestamp() and u.end_reason is null)`),

    findHolder: (stackId: string) =>
      db.maybeOne(sql.rows(HolderRow)`
        /* updateQueue.findHolder */
        select u.kind, us.login, t.name as "tokenName", u.created_at as "createdAt", u.ci_run as "ciRun"
        from stacks s join updates u on u.id = s.active_update_id
        left join users us on us.id = u.requested_by left join api_tokens t on t.id = u.token_id
        where s.id = ${stackId}`),

    count: async (stackId: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* updateQueue.count */ select count(*)::int as count from update_queue_waiters where stack_id = ${stackId} and superseded_by is null`);
      return count;
    },

    /** Counts from 1. Without an entry, returns one beyond the end. */
    positionOf: async (id: string, stackId: string): Promise<number> => {
      const { position } = await db.one(sql.rows(PositionRow)`
        /* updateQueue.positionOf */
        select 1 + count(*)::int as position from update_queue_waiters
        where stack_id = ${stackId} and superseded_by is null and number < coalesce((select number from update_queue_waiters where id = ${id}), 9223372036854775807)`);
      return position;
    },
  };
}

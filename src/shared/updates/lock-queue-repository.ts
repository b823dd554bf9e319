import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

const PlaceRow = Type.Object({
  id: Type.String(),
  /** Since it was taken. */
  waitedSeconds: Type.Number(),
});
export type PlaceRow = Row<typeof PlaceRow>;

const NextRow = Type.Object({
  id: Type.String(),
  stackId: Type.String(),
  /** Whether an update still holds the stack whose lease has expired. */
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

const IdRow = Type.Object({ id: Nullable(Type.String()) });
const CountRow = Type.Object({ count: Type.Integer() });
const PositionRow = Type.Object({ position: Type.Integer() });

/** The channel on which the database says whose turn it is: ids of places. */
export const lockQueueChannel = 'holdfast_lock_queue';

/** A process that died keeps the places of its calls for this time, in seconds. */
const keptAfterDeathSeconds = 10;

export type LockQueueRepository = ReturnType<typeof createLockQueueRepository>;

/** Calls that wait for a stack, in the order in which they arrived. All times are by the database's clock. */
export function createLockQueueRepository(db: Queryable) {
  const waited = sql.fragment`extract(epoch from clock_timestamp() - arrived_at)::float8 as "waitedSeconds"`;
  return {
    join: ({ stackId, tokenId, processId }: { stackId: string; tokenId: string; processId: string }) =>
      db.one(sql.rows(PlaceRow)`
        /* lockQueue.join */
        insert into lock_waiters (stack_id, token_id, process_id, kept_until)
        values (${stackId}, ${tokenId}, ${processId}, clock_timestamp()) returning id, ${waited}`),

    /** Takes up a place again. Null if it was lost or belongs to somebody else. */
    resume: (id: string, { stackId, tokenId, processId }: { stackId: string; tokenId: string; processId: string }) =>
      db.maybeOne(sql.rows(PlaceRow)`
        /* lockQueue.resume */
        update lock_waiters set process_id = ${processId}
        where id = ${id} and stack_id = ${stackId} and token_id = ${tokenId} and (process_id is not null or kept_until > clock_timestamp())
        returning id, ${waited}`),

    /** Keeps the place for a client that was asked to call again, for `seconds`. */
    keep: (id: string, processId: string, seconds: number) =>
      db.query(sql.nothing`
        /* lockQueue.keep */
        update lock_waiters set process_id = null, kept_until = clock_timestamp() + make_interval(secs => ${seconds})
        where id = ${id} and process_id = ${processId}`),

    /** Gives up the place, and wakes the first one if the stack is free: it may have been the turn of this one. */
    leave: (id: string, stackId: string) =>
      db.query(sql.nothing`
        /* lockQueue.leave */
        with gone as (delete from lock_waiters where id = ${id} returning stack_id)
        select pg_notify(${lockQueueChannel}, first.id::text) from (
          select w.id from lock_waiters w join lock_queue_processes p on p.id = w.process_id
          where w.stack_id = ${stackId} and w.id <> ${id} and p.alive_until > clock_timestamp() order by w.number limit 1) first
        where exists (select 1 from gone)
          and exists (select 1 from stacks where id = ${stackId} and active_update_id is null)`),

    /** The first place of the queue at which a call waits now. */
    findFirst: async (stackId: string): Promise<string | null> => {
      const { id } = await db.one(
        sql.rows(IdRow)`/* lockQueue.findFirst */ select first_lock_waiter(${stackId}) as id`,
      );
      return id;
    },

    /** Ends the waiting at the place: its turn has come. */
    take: (id: string) =>
      db.maybeOne(
        sql.rows(PlaceRow)`/* lockQueue.take */ delete from lock_waiters where id = ${id} returning id, ${waited}`,
      ),

    /** Says that the calls of this process wait for `seconds` more. */
    renewProcess: (processId: string, seconds: number) =>
      db.query(sql.nothing`
        /* lockQueue.renewProcess */
        insert into lock_queue_processes (id, alive_until) values (${processId}, clock_timestamp() + make_interval(secs => ${seconds}))
        on conflict (id) do update set alive_until = excluded.alive_until`),

    removeProcess: (processId: string) =>
      db.query(sql.nothing`/* lockQueue.removeProcess */ delete from lock_queue_processes where id = ${processId}`),

    /** The places of this process whose turn it is, of these stacks. Needed where a notification was lost. */
    listNext: (processId: string, stackIds: readonly string[]) =>
      db.any(sql.rows(NextRow)`
        /* lockQueue.listNext */
        select first.id, s.id as "stackId", s.active_update_id is not null as "isExpired"
        from stacks s cross join lateral (
          select w.id, w.process_id from lock_waiters w join lock_queue_processes p on p.id = w.process_id
          where w.stack_id = s.id and p.alive_until > clock_timestamp() order by w.number limit 1) first
        where s.id = any (${sql.array([...stackIds], 'uuid')}) and first.process_id = ${processId}
          and not exists (select 1 from updates u where u.id = s.active_update_id and u.expires_at > clock_timestamp() and u.end_reason is null)`),

    /** Removes places that were not taken up again in time, and processes that have ended. */
    removeGone: () =>
      db.query(sql.nothing`
        /* lockQueue.removeGone */
        with dead as (
          delete from lock_queue_processes where alive_until < clock_timestamp() - make_interval(secs => ${keptAfterDeathSeconds}) returning id)
        delete from lock_waiters w
        where w.process_id is null and w.kept_until <= clock_timestamp()
          or w.process_id is not null and (w.process_id in (select id from dead)
            or not exists (select 1 from lock_queue_processes p where p.id = w.process_id))`),

    /** The update that holds the stack; null if none does. */
    findHolder: (stackId: string) =>
      db.maybeOne(sql.rows(HolderRow)`
        /* lockQueue.findHolder */
        select u.kind, us.login, t.name as "tokenName", u.created_at as "createdAt", u.ci_run as "ciRun"
        from stacks s join updates u on u.id = s.active_update_id
        left join users us on us.id = u.requested_by left join api_tokens t on t.id = u.token_id
        where s.id = ${stackId}`),

    /** How many wait for the stack. */
    count: async (stackId: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* lockQueue.count */ select count(*)::int as count from lock_waiters where stack_id = ${stackId}`);
      return count;
    },

    /** The position of the place in its queue, from 1; one more than all if it is in none. */
    positionOf: async (id: string, stackId: string): Promise<number> => {
      const { position } = await db.one(sql.rows(PositionRow)`
        /* lockQueue.positionOf */
        select 1 + count(*)::int as position from lock_waiters
        where stack_id = ${stackId} and number < coalesce((select number from lock_waiters where id = ${id}), 9223372036854775807)`);
      return position;
    },
  };
}

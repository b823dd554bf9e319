import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';

/** Attempts of a login without a wait, and the time after which one is forgotten. */
const freeAttempts = 20;
const forgetSeconds = 180;
/** A login is back to normal an hour after an attack. */
const maxLevel = 40;
/** The longest time between two attempts. */
export const maxPaceSeconds = 30;

const WaitRow = Type.Object({ waitMs: Type.Integer() });
export type WaitRow = Row<typeof WaitRow>;

export function createSignInPaceRepository(db: Queryable) {
  /** Seconds since the last attempt. */
  const idleSeconds = sql.fragment`greatest(0, extract(epoch from clock_timestamp() - p.at))`;
  return {
    /**
     * Reserves the next time slot for one attempt, if it has begun. Beyond the free attempts, the time to the next slot doubles from a
     * second to the maximum. Returns 0, or the milliseconds until the next slot. Of concurrent calls, only one gets the slot. A slot from
     * before the clock was set back does not count.
     */
    take: async (loginHash: string): Promise<number> => {
      const { waitMs } = await db.one(sql.rows(WaitRow)`
        /* signInPaces.take */
        with taken as (
          insert into sign_in_paces as p (login_hash, level, at, next_at)
          values (${loginHash}, 1, clock_timestamp(), clock_timestamp())
          on conflict (login_hash) do update set
            level = least(greatest(p.level - ${idleSeconds} / ${forgetSeconds}, 0) + 1, ${maxLevel}),
            at = clock_timestamp(),
            next_at = clock_timestamp() + make_interval(secs => (
              select case when l.over <= 0 then 0 else least(power(2, ceil(l.over) - 1), ${maxPaceSeconds}) end
              from (select greatest(p.level - ${idleSeconds} / ${forgetSeconds}, 0) + 1
                - ${freeAttempts} as over) l))
          where p.next_at <= clock_timestamp() or p.at > clock_timestamp()
          returning 1)
        select case when exists (select 1 from taken) then 0 else greatest(coalesce((
          select ceil(extract(epoch from p.next_at - clock_timestamp()) * 1000) from sign_in_paces p
          where p.login_hash = ${loginHash}), 0), 50) end::int as "waitMs"`);
      return waitMs;
    },

    /** Uncounts an attempt that has succeeded. */
    giveBack: (loginHash: string) =>
      db.query(sql.nothing`
        /* signInPaces.giveBack */
        update sign_in_paces set level = greatest(level - 1, 0) where login_hash = ${loginHash}`),

    deleteOld: () =>
      db.query(sql.nothing`
        /* signInPaces.deleteOld */
        delete from sign_in_paces where at < now() - make_interval(secs => ${maxLevel * forgetSeconds})`),
  };
}

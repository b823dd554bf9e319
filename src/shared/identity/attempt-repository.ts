import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

/** Allowed attempts per key, and how long further ones are refused. */
export interface AttemptLimit {
  readonly name: string;
  readonly attempts: number;
  readonly perSeconds: number;
  readonly blockSeconds: number;
}

const CountRow = Type.Object({ points: Type.Integer(), leftMs: Type.Number() });

/** Ms since 1970 by the clock of Postgres, so that replicas with different clocks count together. */
const nowMs = sql.fragment`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

export type AttemptRepository = ReturnType<typeof createAttemptRepository>;

export function createAttemptRepository(db: Queryable) {
  return {
    /** The first attempt beyond the limit blocks the key. Shortens a wait that is too long because the clock was set back. */
    count: (key: string, { attempts, blockSeconds, perSeconds }: AttemptLimit) =>
      db.one(sql.rows(CountRow)`
        /* attempts.count */
        insert into sign_in_attempts as a (key, points, expire) values (${key}, 1, ${nowMs} + ${perSeconds * 1000})
        on conflict (key) do update set
          points = case when a.expire <= ${nowMs} then 1 else a.points + 1 end,
          expire = case
            when a.expire <= ${nowMs} then ${nowMs} + ${perSeconds * 1000}
            when a.points = ${attempts} and ${blockSeconds > 0} then ${nowMs} + ${blockSeconds * 1000}
            else least(a.expire, ${nowMs} + ${Math.max(perSeconds, blockSeconds) * 1000}) end
        returning points, (expire - ${nowMs})::float8 as "leftMs"`),

    takeBack: (key: string) =>
      db.query(sql.nothing`
        /* attempts.takeBack */ update sign_in_attempts set points = points - 1 where key = ${key} and expire > ${nowMs}`),

    forget: (key: string) =>
      db.query(sql.nothing`/* attempts.forget */ delete from sign_in_attempts where key = ${key}`),

    deleteOld: () =>
      db.query(sql.nothing`/* attempts.deleteOld */ delete from sign_in_attempts where expire < (select ${nowMs})`),
  };
}

import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const IdRow = Type.Object({ id: Type.String() });

export const holdSeconds = 300;

/** While a hold is valid, no blob becomes due for deletion. Times are in seconds. */
export function createBlobHoldRepository(db: Queryable) {
  return {
    /** The hold is valid for `seconds`, with renewals for up to `longest`. Also removes expired holds. */
    insert: async (seconds: number, longest: number): Promise<string> => {
      const { id } = await db.one(sql.rows(IdRow)`
        /* blobHolds.insert */
        with ended as (delete from blob_holds where held_until < now())
        insert into blob_holds (held_until, ends_at)
        values (now() + make_interval(secs => ${seconds}), now() + make_interval(secs => ${longest})) returning id`);
      return id;
    },

    /** Returns whether the hold is still valid. */
    renew: async (id: string, seconds: number): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* blobHolds.renew */
        update blob_holds set held_until = least(ends_at, now() + make_interval(secs => ${seconds}))
        where id = ${id}::uuid and held_until > now()`);
      return rowCount > 0;
    },

    /** Ends holds that are too long because the clock was set back, unless they are renewed. Returns the number. */
    clip: async (seconds: number): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* blobHolds.clip */
        update blob_holds set held_until = now() + make_interval(secs => ${seconds})
        where held_until > now() + make_interval(secs => ${seconds})`);
      return rowCount;
    },

    delete: (id: string) => db.query(sql.nothing`/* blobHolds.delete */ delete from blob_holds where id = ${id}::uuid`),
  };
}

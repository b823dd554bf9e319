import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const KeyRow = Type.Object({ key: Type.String() });

export type BlobRepository = ReturnType<typeof createBlobRepository>;

/** One row per object in the blob store, from before its upload until after its deletion. */
export function createBlobRepository(db: Queryable) {
  const unreferenced = sql.fragment`
    not exists (select 1 from checkpoints c where c.blob_key = b.key)
    and not exists (select 1 from journal_fold_points f where f.blob_key = b.key)`;
  return {
    insert: (key: string) => db.query(sql.nothing`/* blobs.insert */ insert into blobs (key) values (${key})`),

    /** Whether the sweep has not taken the blob for an orphan yet. */
    isKept: (key: string) =>
      db.exists(sql.rows(KeyRow)`
        /* blobs.isKept */ select key from blobs where key = ${key} and condemned_at is null`),

    /**
     * Blobs older than the grace period that nothing refers to, locked against new references until the transaction
     * ends. Ask `condemn` with them in the same transaction: only it sees references made up to the lock.
     */
    lockOrphans: async (graceSeconds: number, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.lockOrphans */
        select b.key from blobs b
        where b.condemned_at is null and b.created_at < now() - make_interval(secs => ${graceSeconds})
          and ${unreferenced}
        order by b.created_at limit ${limit} for update of b skip locked`);
      return rows.map((row) => row.key);
    },

    condemn: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* blobs.condemn */
        update blobs b set condemned_at = now()
        where b.key = any(${sql.array(keys, 'text')}) and ${unreferenced}`),

    listCondemned: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.listCondemned */
        select key from blobs where condemned_at is not null order by condemned_at limit ${limit}`);
      return rows.map((row) => row.key);
    },

    delete: (key: string) =>
      db.query(sql.nothing`/* blobs.delete */ delete from blobs where key = ${key} and condemned_at is not null`),
  };
}

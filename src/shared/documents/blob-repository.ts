import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

const KeyRow = Type.Object({ key: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const DeletionRow = Type.Object({ key: Type.String(), deletedBefore: Type.Boolean() });
export type BlobDeletion = Row<typeof DeletionRow>;

const KnownRow = Type.Object({ key: Type.String(), isReferenced: Type.Boolean() });
export type KnownBlob = Row<typeof KnownRow>;

const SealedRow = Type.Object({
  keyId: Nullable(Type.String()),
  version: Nullable(Type.Integer()),
  count: Type.Integer(),
});

const IdRow = Type.Object({ id: Type.String() });

export type BlobRepository = ReturnType<typeof createBlobRepository>;

/**
 * One row per object in the blob store, from before its upload until a while after its deletion. Triggers keep
 * `unreferenced_since` as references come and go.
 */
export function createBlobRepository(db: Queryable) {
  const isReferenced = sql.fragment`
    (exists (select 1 from checkpoints c where c.blob_key = b.key)
      or exists (select 1 from journal_fold_points f where f.blob_key = b.key))`;
  return {
    /** `sealingKeyId`: the data key that seals the object, if any. */
    insert: (key: string, sealingKeyId: string | null) =>
      db.query(sql.nothing`
        /* blobs.insert */ insert into blobs (key, sealing_key_id) values (${key}, ${sealingKeyId}::uuid)`),

    /** Whether the sweep has not taken the blob for an orphan yet. */
    isKept: (key: string) =>
      db.exists(sql.rows(KeyRow)`
        /* blobs.isKept */ select key from blobs where key = ${key} and condemned_at is null`),

    /** Leaves an object to the sweep that was stored after its blob was condemned, its row being there or not. */
    giveBack: (key: string) =>
      db.query(sql.nothing`
        /* blobs.giveBack */
        insert into blobs (key, condemned_at, delete_at) values (${key}, now(), now())
        on conflict (key) do update set delete_at = now(), deleted_at = null where blobs.condemned_at is not null`),

    /**
     * Blobs that nothing has referred to for `seconds`, as their marks say, locked against new references until the
     * transaction ends. Ask `condemn` with them in the same transaction: only it sees references made up to the lock.
     */
    lockUnreferenced: async (seconds: number, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.lockUnreferenced */
        select key from blobs
        where unreferenced_since < now() - make_interval(secs => ${seconds}) and condemned_at is null
        order by unreferenced_since limit ${limit} for update skip locked`);
      return rows.map((row) => row.key);
    },

    /** Condemns those of `keys` that nothing refers to; takes the mark from the others. */
    condemn: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* blobs.condemn */
        update blobs b set
          unreferenced_since = case when f.found then null else b.unreferenced_since end,
          condemned_at = case when f.found then null else now() end,
          delete_at = case when f.found then null else now() end
        from (select b.key, ${isReferenced} as found from blobs b where b.key = any(${sql.array(keys, 'text')})) f
        where b.key = f.key and b.condemned_at is null`),

    /** Condemned blobs whose object is to be deleted now, or once more. */
    listDeletions: (limit: number): Promise<readonly BlobDeletion[]> =>
      db.any(sql.rows(DeletionRow)`
        /* blobs.listDeletions */
        select key, deleted_at is not null as "deletedBefore" from blobs
        where delete_at <= now() and condemned_at is not null order by delete_at limit ${limit}`),

    /** The object is deleted; it will be once more after `graceSeconds`, should an upload arrive until then. */
    noteDeleted: (key: string, graceSeconds: number) =>
      db.query(sql.nothing`
        /* blobs.noteDeleted */
        update blobs set deleted_at = clock_timestamp(), delete_at = clock_timestamp() + make_interval(secs => ${graceSeconds})
        where key = ${key} and condemned_at is not null`),

    /** The object could not be deleted: others first. */
    postponeDeletion: (key: string, seconds: number) =>
      db.query(sql.nothing`
        /* blobs.postponeDeletion */
        update blobs set delete_at = clock_timestamp() + make_interval(secs => ${seconds})
        where key = ${key} and condemned_at is not null`),

    /** Forgets a blob whose object has been deleted for good. */
    delete: (key: string) =>
      db.query(sql.nothing`
        /* blobs.delete */ delete from blobs where key = ${key} and condemned_at is not null and deleted_at is not null`),

    /** Cuts waits that a clock set back has made too long; `seconds` is the longest of them. */
    clipWaits: (seconds: number) =>
      db.query(sql.nothing`
        /* blobs.clipWaits */
        with unreferenced as (
          update blobs set unreferenced_since = now() where unreferenced_since > now() and condemned_at is null
        )
        update blobs set delete_at = now() where delete_at > now() + make_interval(secs => ${seconds})`),

    /** Those of `keys`, read from the store, that have no row. */
    listUnknown: async (keys: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.listUnknown */
        select k.key from ${sql.unnest(
          keys.map((key) => [key]),
          ['text'],
        )} as k (key)
        where not exists (select 1 from blobs b where b.key = k.key)`);
      return rows.map((row) => row.key);
    },

    /** Gives objects that have no row one, as blobs that nothing refers to since now. */
    adopt: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* blobs.adopt */
        insert into blobs (key) select k.key from ${sql.unnest(
          keys.map((key) => [key]),
          ['text'],
        )} as k (key)
        on conflict (key) do nothing`),

    /** One page of all rows in order of their keys. */
    listAfter: (after: string, limit: number): Promise<readonly KnownBlob[]> =>
      db.any(sql.rows(KnownRow)`
        /* blobs.listAfter */
        select b.key, ${isReferenced} as "isReferenced" from blobs b where b.key > ${after} order by b.key limit ${limit}`),

    listReferenced: async (keys: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.listReferenced */
        select b.key from blobs b where b.key = any(${sql.array(keys, 'text')}) and ${isReferenced}`);
      return rows.map((row) => row.key);
    },

    /** Marks those of `keys` that the sweep would never look at, made before there were marks. Returns how many. */
    markMissed: async (keys: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* blobs.markMissed */
        update blobs b set
          unreferenced_since = coalesce(b.unreferenced_since, now()),
          delete_at = case when b.condemned_at is null then null else now() end
        where b.key = any(${sql.array(keys, 'text')}) and not ${isReferenced}
          and (case when b.condemned_at is null then b.unreferenced_since else b.delete_at end) is null`);
      return rowCount;
    },

    /** How many blobs are in use, counted up to `limit`. */
    countInUse: (limit: number): Promise<number> =>
      db
        .one(sql.rows(CountRow)`
          /* blobs.countInUse */
          select count(*)::integer as count
          from (select 1 from blobs where unreferenced_since is null and condemned_at is null limit ${limit}) b`)
        .then(({ count }) => count),

    /** How many objects that are kept each data key of documents has sealed, and how many are not sealed (null). */
    countBySealingKey: () =>
      db.any(sql.rows(SealedRow)`
        /* blobs.countBySealingKey */
        select b.sealing_key_id as "keyId", k.version, count(*)::integer as count
        from blobs b left join encryption_keys k on k.id = b.sealing_key_id
        where b.condemned_at is null group by 1, 2 order by k.version nulls first`),

    /** What tells this installation from others that might share the store. */
    installationId: (): Promise<string> =>
      db.one(sql.rows(IdRow)`/* blobs.installationId */ select id from installation`).then(({ id }) => id),
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';

/** Only blobs of documents have a row. */
const rowPrefix = 'checkpoints/';

export const hasRow = (key: string): boolean => key.startsWith(rowPrefix);

const KeyRow = Type.Object({ key: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const DeletionRow = Type.Object({ key: Type.String(), deletedBefore: Type.Boolean() });
export type BlobDeletion = Row<typeof DeletionRow>;

const KnownRow = Type.Object({ key: Type.String(), isReferenced: Type.Boolean() });
export type KnownBlob = Row<typeof KnownRow>;

const EncryptedRow = Type.Object({
  keyId: Nullable(Type.String()),
  version: Nullable(Type.Integer()),
  count: Type.Integer(),
});

const IdRow = Type.Object({ id: Type.String() });

export type BlobRepository = ReturnType<typeof createBlobRepository>;

/** A condition on blobs `b`, without parameters. */
export const isReferenced = sql.fragment`
  (exists (select 1 from checkpoints c where c.blob_key = b.key)
    or exists (select 1 from journal_snapshots f where f.blob_key = b.key)
    or exists (select 1 from event_segments g where g.blob_key = b.key)
    or exists (select 1 from version_chunks p where p.blob_key = b.key)
    or exists (select 1 from policy_pack_versions v where v.blob_key = b.key))`;

/** Selects unreferenced blobs `b` that the sweep would never find. */
const isMissed = sql.fragment`
  (not ${isReferenced} and (case when b.pending_deletion_since is null then b.unreferenced_since else b.delete_at end) is null)`;

/**
 * The row of an object exists from before the upload until some time after the deletion. Triggers maintain `unreferenced_since` when
 * references are added or removed.
 */
export function createBlobRepository(db: Queryable) {
  return {
    /** The data key that encrypts the object, if any. */
    insert: (key: string, encryptionKeyId: string | null) =>
      db.query(sql.nothing`
        /* blobs.insert */ insert into blobs (key, encryption_key_id) values (${key}, ${encryptionKeyId}::uuid)`),

    /** The sweep has not marked the blob as pending deletion. */
    isKept: (key: string) =>
      db.exists(sql.rows(KeyRow)`
        /* blobs.isKept */ select key from blobs where key = ${key} and pending_deletion_since is null`),

    /** The object was stored after its blob was marked as pending deletion. The row may be deleted already. */
    scheduleDeletion: (key: string) =>
      db.query(sql.nothing`
        /* blobs.scheduleDeletion */
        insert into blobs (key, pending_deletion_since, delete_at) values (${key}, now(), now())
        on conflict (key) do update set delete_at = now(), deleted_at = null where blobs.pending_deletion_since is not null`),

    /**
     * Blobs marked as unreferenced for at least `seconds`, or none during a backup. Locks them against new references. Pass them to
     * `markForDeletion` in the same transaction: it rechecks them, and sees references made before the lock.
     */
    lockUnreferenced: async (seconds: number, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.lockUnreferenced */
        select key from blobs
        where unreferenced_since < now() - make_interval(secs => ${seconds}) and pending_deletion_since is null
          and not exists (select 1 from blob_holds where held_until > now())
        order by unreferenced_since limit ${limit} for update skip locked`);
      return rows.map((row) => row.key);
    },

    /** Clears the mark of blobs that are referenced. */
    markForDeletion: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* blobs.markForDeletion */
        update blobs b set
          unreferenced_since = case when f.found then null else b.unreferenced_since end,
          pending_deletion_since = case when f.found then null else now() end,
          delete_at = case when f.found then null else now() end
        from (select b.key, ${isReferenced} as found from blobs b where b.key = any(${sql.array(keys, 'text')})) f
        where b.key = f.key and b.pending_deletion_since is null`),

    /** Objects due for their first or second deletion. */
    listDeletions: (limit: number): Promise<readonly BlobDeletion[]> =>
      db.any(sql.rows(DeletionRow)`
        /* blobs.listDeletions */
        select key, deleted_at is not null as "deletedBefore" from blobs
        where delete_at <= now() and pending_deletion_since is not null order by delete_at limit ${limit}`),

    /** The object is deleted again after `graceSeconds`, in case an upload arrived in between. */
    noteDeleted: (key: string, graceSeconds: number) =>
      db.query(sql.nothing`
        /* blobs.noteDeleted */
        update blobs set deleted_at = clock_timestamp(), delete_at = clock_timestamp() + make_interval(secs => ${graceSeconds})
        where key = ${key} and pending_deletion_since is not null`),

    /** Lets other deletions go first after a failed one. */
    postponeDeletion: (key: string, seconds: number) =>
      db.query(sql.nothing`
        /* blobs.postponeDeletion */
        update blobs set delete_at = clock_timestamp() + make_interval(secs => ${seconds})
        where key = ${key} and pending_deletion_since is not null`),

    /** Call this only after the object has been deleted for good. */
    delete: (key: string) =>
      db.query(sql.nothing`
        /* blobs.delete */ delete from blobs where key = ${key} and pending_deletion_since is not null and deleted_at is not null`),

    /** Shortens waits that are too long because the clock was set back. `seconds` is the longest valid wait. */
    clipWaits: (seconds: number) =>
      db.query(sql.nothing`
        /* blobs.clipWaits */
        with unreferenced as (
          update blobs set unreferenced_since = now() where unreferenced_since > now() and pending_deletion_since is null
        )
        update blobs set delete_at = now() where delete_at > now() + make_interval(secs => ${seconds})`),

    /** The keys of a listing of the store that have no row. */
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

    /** Adds rows for objects without one. They are unreferenced from now on. */
    adopt: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* blobs.adopt */
        insert into blobs (key) select k.key from ${sql.unnest(
          keys.map((key) => [key]),
          ['text'],
        )} as k (key)
        on conflict (key) do nothing`),

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

    listMissed: async (keys: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* blobs.listMissed */ select b.key from blobs b where b.key = any(${sql.array(keys, 'text')}) and ${isMissed}`);
      return rows.map((row) => row.key);
    },

    markMissed: async (keys: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* blobs.markMissed */
        update blobs b set
          unreferenced_since = coalesce(b.unreferenced_since, now()),
          delete_at = case when b.pending_deletion_since is null then null else now() end
        where b.key = any(${sql.array(keys, 'text')}) and ${isMissed}`);
      return rowCount;
    },

    count: (): Promise<number> =>
      db
        .one(sql.rows(CountRow)`/* blobs.count */ select count(*)::integer as count from blobs`)
        .then(({ count }) => count),

    countInUse: (limit: number): Promise<number> =>
      db
        .one(sql.rows(CountRow)`
          /* blobs.countInUse */
          select count(*)::integer as count
          from (select 1 from blobs where unreferenced_since is null and pending_deletion_since is null limit ${limit}) b`)
        .then(({ count }) => count),

    /** Counts live objects by data key; null for the unencrypted ones. */
    countByEncryptionKey: () =>
      db.any(sql.rows(EncryptedRow)`
        /* blobs.countByEncryptionKey */
        select b.encryption_key_id as "keyId", k.version, count(*)::integer as count
        from blobs b left join encryption_keys k on k.id = b.encryption_key_id
        where b.pending_deletion_since is null group by 1, 2 order by k.version nulls first`),

    /** Distinguishes installations that might share the store. */
    installationId: (): Promise<string> =>
      db.one(sql.rows(IdRow)`/* blobs.installationId */ select id from installation`).then(({ id }) => id),
  };
}

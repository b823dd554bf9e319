import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../db/sql.ts';

/** `note` tells the entry from a later one for the same blob. */
const DueRow = Type.Object({ key: Type.String(), isDeletion: Type.Boolean(), note: Type.String() });
type DueBlob = Row<typeof DueRow>;

const KeyRow = Type.Object({ key: Type.String() });
const LagRow = Type.Object({ blobs: Type.Integer(), bytes: Type.Integer(), seconds: Type.Integer() });

const retrySeconds = 600;

export type CopyQueueRepository = ReturnType<typeof createCopyQueueRepository>;

/** Blobs that one of the two stores may lack, or that must still be deleted there. */
export function createCopyQueueRepository(db: Queryable) {
  return {
    add: (key: string, { bytes, isDeletion }: { readonly bytes: number; readonly isDeletion: boolean }) =>
      db.query(sql.nothing`
        /* copyQueue.add */
        insert into blob_copies_due (key, is_deletion, bytes) values (${key}, ${isDeletion}, ${bytes})
        on conflict (key) do update set is_deletion = excluded.is_deletion`),

    addAll: (keys: readonly string[]) =>
      db.query(sql.nothing`
        /* copyQueue.addAll */
        insert into blob_copies_due (key, is_deletion, bytes)
        select key, false, 0 from unnest(${sql.array(keys, 'text')}) key on conflict (key) do nothing`),

    /** The blob could not be copied just now. */
    addPostponed: (key: string) =>
      db.query(sql.nothing`
        /* copyQueue.addPostponed */
        insert into blob_copies_due (key, is_deletion, bytes, try_at)
        values (${key}, false, 0, clock_timestamp() + make_interval(secs => ${retrySeconds})) on conflict (key) do nothing`),

    filterCopies: async (keys: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* copyQueue.filterCopies */
        select key from blob_copies_due where key = any(${sql.array(keys, 'text')}) and not is_deletion`);
      return rows.map(({ key }) => key);
    },

    listCopies: async (prefix: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(KeyRow)`
        /* copyQueue.listCopies */
        select key from blob_copies_due where starts_with(key, ${prefix}) and not is_deletion order by key limit ${limit}`);
      return rows.map(({ key }) => key);
    },

    /** Lists entries that are not postponed, the longest waiting first. */
    listDue: (limit: number) =>
      db.any(sql.rows(DueRow)`
        /* copyQueue.listDue */
        select key, is_deletion as "isDeletion", xmin::text as note from blob_copies_due
        where try_at <= clock_timestamp() order by try_at limit ${limit}`),

    postpone: (key: string) =>
      db.query(sql.nothing`
        /* copyQueue.postpone */
        update blob_copies_due set try_at = clock_timestamp() + make_interval(secs => ${retrySeconds}) where key = ${key}`),

    /** Ends waits that are too long because the clock was set back. Returns the number of entries. */
    clipWaits: async (): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* copyQueue.clipWaits */
        update blob_copies_due set try_at = now() where try_at > now() + make_interval(secs => ${retrySeconds + 1})`);
      return rowCount;
    },

    /** Keeps an entry whose blob was queued again: the work for it may have come too soon. */
    remove: ({ key, note }: DueBlob) =>
      db.query(sql.nothing`
        /* copyQueue.remove */ delete from blob_copies_due where key = ${key} and xmin = ${note}::xid`),

    /** `bytes` are the known ones; `seconds` is the age of the oldest entry. */
    readLag: () =>
      db.one(sql.rows(LagRow)`
        /* copyQueue.readLag */
        select count(*)::integer as blobs, coalesce(sum(bytes), 0)::bigint as bytes,
          greatest(0, ceil(extract(epoch from clock_timestamp() - min(noted_at))))::integer as seconds
        from blob_copies_due`),
  };
}

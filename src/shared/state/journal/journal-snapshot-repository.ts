import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Bytes, Nullable } from '../../platform/schema/standard-schema.ts';
import type { StoredDocument } from '../checkpoints/document-store.ts';

const JournalSnapshotRow = Type.Object({
  entries: Type.Integer(),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  codec: Type.String(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
});
export type JournalSnapshotRow = Row<typeof JournalSnapshotRow>;
const ClaimedRow = Type.Object({ updateId: Type.String(), sizeBytes: Type.Integer() });

export type JournalSnapshotRepository = ReturnType<typeof createJournalSnapshotRepository>;

/** A cache: losing a snapshot costs time, but no state. */
export function createJournalSnapshotRepository(db: Queryable) {
  return {
    find: (updateId: string) =>
      db.maybeOne(sql.rows(JournalSnapshotRow)`
        /* journalSnapshotRows.find */
        select entries, sha256, size_bytes as "sizeBytes", codec, inline_bytes as "inlineBytes", blob_key as "blobKey"
        from journal_snapshots where update_id = ${updateId}`),

    /**
     * Does nothing if a later snapshot exists, if the new snapshot's blob is pending deletion, or if the journal is already compacted,
     * because nothing would delete the snapshot. Waits for a transaction that is marking the journal as compacted.
     */
    upsert: (updateId: string, entries: number, document: StoredDocument) =>
      db.query(sql.nothing`
        /* journalSnapshotRows.upsert */
        with blob as (select key from blobs where key = ${document.blobKey}::text and pending_deletion_since is null for key share),
        -- The update first, as compactions do, whose row the foreign key locks later.
        journal as (
          select j.update_id from updates u join journals j on j.update_id = u.id
          where u.id = ${updateId}::uuid and j.compacted_at is null for key share of u for share of j)
        insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, inline_bytes, blob_key)
        select update_id, ${entries}::integer, ${sql.binary(document.sha256)}, ${document.sizeBytes}::bigint, ${document.codec}::text,
               ${document.inlineBytes ? sql.binary(document.inlineBytes) : null}::bytea, ${document.blobKey}::text
        from journal where ${document.blobKey}::text is null or exists (select 1 from blob)
        on conflict (update_id) do update set entries = excluded.entries, sha256 = excluded.sha256, size_bytes = excluded.size_bytes,
          codec = excluded.codec, inline_bytes = excluded.inline_bytes, blob_key = excluded.blob_key, checked_at = now()
        where journal_snapshots.entries < excluded.entries`),

    /** Claims snapshots not read back within `periodSeconds`. They are due again after `claimSeconds`. */
    claimChecks: async (periodSeconds: number, claimSeconds: number, limit: number) =>
      db.any(sql.rows(ClaimedRow)`
        /* journalSnapshotRows.claimChecks */
        update journal_snapshots set checked_at = now() - make_interval(secs => ${periodSeconds}) + make_interval(secs => ${claimSeconds})
        where update_id in (
          select update_id from journal_snapshots where checked_at < now() - make_interval(secs => ${periodSeconds})
          order by checked_at limit ${limit} for no key update skip locked)
        returning update_id as "updateId", size_bytes as "sizeBytes"`),

    listAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(ClaimedRow)`
        /* journalSnapshotRows.listAfter */
        select update_id as "updateId", size_bytes as "sizeBytes" from journal_snapshots
        where update_id > ${after}::uuid order by update_id limit ${limit}`);
      return rows.map((row) => row.updateId);
    },

    listOfUpdates: async (updateIds: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(ClaimedRow)`
        /* journalSnapshotRows.listOfUpdates */
        select update_id as "updateId", size_bytes as "sizeBytes" from journal_snapshots
        where update_id = any (${sql.array([...updateIds], 'uuid')})`);
      return rows.map((row) => row.updateId);
    },

    markIntact: (updateId: string, sha256: Buffer) =>
      db.query(sql.nothing`
        /* journalSnapshotRows.markIntact */
        update journal_snapshots set checked_at = now() where update_id = ${updateId} and sha256 = ${sql.binary(sha256)}`),

    /** Does nothing if the snapshot has another hash. */
    delete: (updateId: string, sha256: Buffer) =>
      db.query(sql.nothing`
        /* journalSnapshotRows.delete */
        delete from journal_snapshots where update_id = ${updateId} and sha256 = ${sql.binary(sha256)}`),
  };
}

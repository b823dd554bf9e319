import { Type } from 'typebox';
import type { StoredDocument } from '../checkpoints/document-store.ts';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';

const FoldPointRow = Type.Object({
  entries: Type.Integer(),
  sizeBytes: Type.Integer(),
  codec: Type.String(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
});

export type FoldPointRepository = ReturnType<typeof createFoldPointRepository>;

/** Where the fold of an update's journal can go on. A cache: losing one costs time, not state. */
export function createFoldPointRepository(db: Queryable) {
  return {
    find: (updateId: string) =>
      db.maybeOne(sql.rows(FoldPointRow)`
        /* journalFoldPoints.find */
        select entries, size_bytes as "sizeBytes", codec, inline_bytes as "inlineBytes", blob_key as "blobKey"
        from journal_fold_points where update_id = ${updateId}`),

    /** Puts the point in place of an earlier one; does nothing when there is a later one or its blob is condemned. */
    upsert: (updateId: string, entries: number, place: StoredDocument) =>
      db.query(sql.nothing`
        /* journalFoldPoints.upsert */
        with blob as (select key from blobs where key = ${place.blobKey}::text and condemned_at is null for key share)
        insert into journal_fold_points (update_id, entries, size_bytes, codec, inline_bytes, blob_key)
        select ${updateId}::uuid, ${entries}::integer, ${place.sizeBytes}::bigint, ${place.codec}::text,
               ${place.inlineBytes ? sql.binary(place.inlineBytes) : null}::bytea, ${place.blobKey}::text
        where ${place.blobKey}::text is null or exists (select 1 from blob)
        on conflict (update_id) do update set entries = excluded.entries, size_bytes = excluded.size_bytes,
          codec = excluded.codec, inline_bytes = excluded.inline_bytes, blob_key = excluded.blob_key
        where journal_fold_points.entries < excluded.entries`),
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { createByteCheckRepository, MarkedRow } from '../state/checkpoints/byte-check-repository.ts';
import type { StoredDocument } from '../state/checkpoints/document-store.ts';

const ArchiveRow = Type.Object({
  id: Type.String(),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  storedBytes: Type.Integer(),
  codec: Type.String(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
  isPublished: Type.Boolean(),
  isDamaged: Type.Boolean(),
  organization: Type.String(),
  pack: Type.String(),
  versionTag: Type.String(),
  now: Timestamp,
});
export type ArchiveRow = Row<typeof ArchiveRow>;

export type PolicyArchiveRepository = ReturnType<typeof createPolicyArchiveRepository>;

export function createPolicyArchiveRepository(db: Queryable) {
  return {
    ...createByteCheckRepository(db, sql.fragment`policy_pack_versions`),

    /** Returns false if the version already has an archive or was removed meanwhile, or if the archive's blob is pending deletion. */
    set: async (id: string, archive: StoredDocument): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* policyArchives.set */
        with blob as (
          select key from blobs where key = ${archive.blobKey}::text and pending_deletion_since is null for key share
        )
        update policy_pack_versions set sha256 = ${sql.binary(archive.sha256)}, size_bytes = ${archive.sizeBytes}::bigint,
          stored_bytes = ${archive.storedBytes}::bigint, codec = ${archive.codec},
          inline_bytes = ${archive.inlineBytes ? sql.binary(archive.inlineBytes) : null}::bytea,
          blob_key = ${archive.blobKey}::text, checked_at = now(), damaged_at = null
        where id = ${id} and published_at is null and removed_at is null and sha256 is null
          and (${archive.blobKey}::text is null or exists (select 1 from blob))`);
      return rowCount > 0;
    },

    find: (id: string) =>
      db.maybeOne(sql.rows(ArchiveRow)`
        /* policyArchives.find */
        select v.id, v.sha256, v.size_bytes as "sizeBytes", v.stored_bytes as "storedBytes", v.codec,
          v.inline_bytes as "inlineBytes", v.blob_key as "blobKey", v.published_at is not null as "isPublished",
          v.damaged_at is not null as "isDamaged", o.name as organization, p.name as pack, v.version_tag as "versionTag", now() as now
        from policy_pack_versions v join policy_packs p on p.id = v.pack_id join organizations o on o.id = p.organization_id
        where v.id = ${id} and v.sha256 is not null`),

    /** Returns null if this archive is gone, or was replaced by now. */
    markDamaged: (id: string, sha256: Buffer) =>
      db.maybeOne(sql.rows(MarkedRow)`
        /* policyArchives.markDamaged */
        with before as (
          select damaged_at from policy_pack_versions where id = ${id} and sha256 = ${sql.binary(sha256)} for no key update
        )
        update policy_pack_versions v set checked_at = now(), damaged_at = coalesce(v.damaged_at, now())
        from before where v.id = ${id} returning before.damaged_at is null as "isNew"`),
  };
}

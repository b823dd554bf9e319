import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import {
  type CheckClaim,
  CheckStatisticsRow,
  damagedPeriodSeconds,
  MarkedRow,
} from '../state/checkpoints/check-claim.ts';
import type { StoredDocument } from '../state/checkpoints/document-store.ts';

const IdRow = Type.Object({ id: Type.String() });
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
const ClaimedRow = Type.Object({ id: Type.String(), storedBytes: Type.Integer() });

export type PolicyArchiveRepository = ReturnType<typeof createPolicyArchiveRepository>;

/** The archives of versions of policy packs. */
export function createPolicyArchiveRepository(db: Queryable) {
  return {
    /**
     * Stores the archive of a version, replacing an earlier one. Returns false if it was published or removed meanwhile, or if the
     * archive's blob is pending deletion.
     */
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
        where id = ${id} and published_at is null and removed_at is null
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

    /** Claims archives that are due to be read back: the least recently read ones, and damaged ones every hour. */
    claimChecks: ({ periodSeconds, claimSeconds, limit }: CheckClaim) =>
      db.any(sql.rows(ClaimedRow)`
        /* policyArchives.claimChecks */
        with due as materialized (
          select id from policy_pack_versions
          where sha256 is not null and checked_at < now() - make_interval(
            secs => case when damaged_at is null then ${periodSeconds}::float8 else ${damagedPeriodSeconds}::float8 end)
          order by checked_at limit ${limit} for no key update skip locked
        )
        update policy_pack_versions v set checked_at = case when v.damaged_at is null
          then now() - make_interval(secs => ${periodSeconds}) + make_interval(secs => ${claimSeconds}) else now() end
        from due where v.id = due.id
        returning v.id, v.stored_bytes as "storedBytes"`),

    /** Ids of all archives, in order, after the given id. */
    listAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* policyArchives.listAfter */
        select id from policy_pack_versions where id > ${after}::uuid and sha256 is not null order by id limit ${limit}`);
      return rows.map(({ id }) => id);
    },

    markIntact: (id: string) =>
      db.query(sql.nothing`
        /* policyArchives.markIntact */
        update policy_pack_versions set checked_at = now(), damaged_at = null where id = ${id}`),

    /** Records that the archive in this row is damaged. Null if it is gone, or another one by now. */
    markDamaged: (id: string, sha256: Buffer) =>
      db.maybeOne(sql.rows(MarkedRow)`
        /* policyArchives.markDamaged */
        with before as (
          select damaged_at from policy_pack_versions where id = ${id} and sha256 = ${sql.binary(sha256)} for no key update
        )
        update policy_pack_versions v set checked_at = now(), damaged_at = coalesce(v.damaged_at, now())
        from before where v.id = ${id} returning before.damaged_at is null as "isNew"`),

    /** Number of damaged archives, and the age of the oldest check in seconds. */
    readStatistics: () =>
      db.one(sql.rows(CheckStatisticsRow)`
        /* policyArchives.readStatistics */
        select (select count(*)::integer from policy_pack_versions where damaged_at is not null) as damaged,
          coalesce((select extract(epoch from now() - checked_at)::float8 from policy_pack_versions
            where sha256 is not null order by checked_at limit 1), 0) as "oldestSeconds"`),
  };
}

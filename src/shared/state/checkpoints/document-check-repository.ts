import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { type CheckClaim, CheckStatisticsRow, damagedPeriodSeconds, MarkedRow } from './byte-check-repository.ts';
import type { CheckpointRow } from './checkpoint-repository.ts';
import { chunksCodec, type StoredDocument } from './document-store.ts';

const IdRow = Type.Object({ id: Type.String() });
const UpdateRow = Type.Object({ id: Type.String(), number: Type.Integer() });
const ClaimedRow = Type.Object({ id: Type.String(), bytes: Type.Integer() });
const OwnerRow = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  stackVersion: Nullable(Type.Integer()),
});

interface DocumentClaim extends CheckClaim {
  /** Documents are claimed until they reach this many bytes to read, but at least one. */
  readonly bytes: number;
}

export type DocumentCheckRepository = ReturnType<typeof createDocumentCheckRepository>;

export function createDocumentCheckRepository(db: Queryable) {
  /** The row still points at the bytes that were checked. */
  const sameBytes = ({ id, codec, blobKey, inlineBytes }: CheckpointRow) => sql.fragment`
    c.id = ${id} and c.codec = ${codec} and c.blob_key is not distinct from ${blobKey}::text
    and c.inline_bytes is not distinct from ${inlineBytes ? sql.binary(inlineBytes) : null}::bytea`;

  // An encoded version is read through others: the size of its text is closer to that than its stored bytes.
  const bytesRead = sql.fragment`(case when codec = ${chunksCodec} then size_bytes else stored_bytes end)`;

  return {
    /**
     * Claims damaged documents first, then the least recently verified. No other process can claim them until the claim expires. No locks
     * are kept.
     */
    claim: async ({ periodSeconds, bytes, limit, claimSeconds }: DocumentClaim) =>
      db.any(sql.rows(ClaimedRow)`
        /* documentChecks.claim */
        with damaged as materialized (
          select id, checked_at, ${bytesRead} as bytes from checkpoints
          where damaged_at is not null and checked_at < now() - make_interval(secs => ${damagedPeriodSeconds})
          order by checked_at limit ${limit} for no key update skip locked
        ),
        due as materialized (
          select id, checked_at, ${bytesRead} as bytes from checkpoints
          where checked_at < now() - make_interval(secs => ${periodSeconds}) and damaged_at is null
          order by checked_at limit ${limit} for no key update skip locked
        ),
        measured as (
          select id, bytes, sum(bytes) over (order by rank, checked_at, id) - bytes as before,
            row_number() over (order by rank, checked_at, id) as number
          from (select 1 as rank, * from damaged union all select 2, * from due) as found
        )
        update checkpoints c set checked_at = case when c.damaged_at is null
          then now() - make_interval(secs => ${periodSeconds}) + make_interval(secs => ${claimSeconds}) else now() end
        from measured m where c.id = m.id and m.number <= ${limit} and (m.before < ${bytes} or m.number = 1)
        returning c.id, m.bytes::bigint as bytes`),

    listAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listAfter */ select id from checkpoints where id > ${after}::uuid order by id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Includes deleted stacks that can be restored. */
    listStacksAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listStacksAfter */
        select id from stacks where id > ${after}::uuid and coalesce(checkpoint_id, deleted_checkpoint_id) is not null
        order by id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    findHead: async (stackId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(Type.Object({ id: Nullable(Type.String()) }))`
        /* documentChecks.findHead */
        select coalesce(checkpoint_id, deleted_checkpoint_id) as id from stacks where id = ${stackId}`);
      return row?.id ?? null;
    },

    listUpdates: (stackId: string, after: number, limit: number) =>
      db.any(sql.rows(UpdateRow)`
        /* documentChecks.listUpdates */
        select id, number from updates where stack_id = ${stackId} and number > ${after}::bigint order by number limit ${limit}`),

    listOfUpdates: async (updateIds: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listOfUpdates */
        select id from checkpoints where update_id = any (${sql.array([...updateIds], 'uuid')})`);
      return rows.map((row) => row.id);
    },

    /** Documents that belong to no update, i.e. the state with which the stack was created. */
    listFirst: async (stackId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listFirst */ select id from checkpoints where stack_id = ${stackId} and update_id is null`);
      return rows.map((row) => row.id);
    },

    markIntact: (checkpoint: CheckpointRow) =>
      db.query(sql.nothing`
        /* documentChecks.markIntact */
        update checkpoints c set checked_at = now(), damaged_at = null where ${sameBytes(checkpoint)}`),

    /** Returns null if the row is gone or now points at other bytes. */
    quarantine: (checkpoint: CheckpointRow) =>
      db.maybeOne(sql.rows(MarkedRow)`
        /* documentChecks.quarantine */
        with before as (select damaged_at from checkpoints c where ${sameBytes(checkpoint)} for no key update)
        update checkpoints c set checked_at = now(), damaged_at = coalesce(c.damaged_at, now())
        from before where ${sameBytes(checkpoint)}
        returning before.damaged_at is null as "isNew"`),

    findOwner: (id: string) =>
      db.maybeOne(sql.rows(OwnerRow)`
        /* documentChecks.findOwner */
        select o.name as organization, p.name as project, s.name as stack, u.stack_version as "stackVersion"
        from checkpoints c join stacks s on s.id = c.stack_id join projects p on p.id = s.project_id
        join organizations o on o.id = p.organization_id left join updates u on u.id = c.update_id
        where c.id = ${id}`),

    findCurrent: async (updateId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* documentChecks.findCurrent */
        select checkpoint_id as id from updates where id = ${updateId} and checkpoint_id is not null`);
      return row?.id ?? null;
    },

    /** Other checkpoints that should have the same bytes. */
    listCopies: async ({ id, sha256 }: CheckpointRow, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listCopies */
        select id from checkpoints
        where sha256 = ${sql.binary(sha256)} and id <> ${id} and damaged_at is null
        order by checked_at desc limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Requires the same hash. Returns false if the row no longer points at the damaged bytes, or if the new blob is pending deletion. */
    replace: async (damaged: CheckpointRow, document: StoredDocument): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* documentChecks.replace */
        with blob as (
          select key from blobs where key = ${document.blobKey}::text and pending_deletion_since is null for key share
        ),
        whole as (
          delete from checkpoint_chunks p using checkpoints c
          where p.checkpoint_id = c.id and ${sameBytes(damaged)} and c.damaged_at is not null
            and (${document.blobKey}::text is null or exists (select 1 from blob))
        )
        update checkpoints c set encoded_number = null, stored_bytes = ${document.storedBytes}::bigint, codec = ${document.codec},
          inline_bytes = ${document.inlineBytes ? sql.binary(document.inlineBytes) : null}::bytea,
          blob_key = ${document.blobKey}::text, damaged_at = null, checked_at = now(),
          encode_at = case when c.codec = ${chunksCodec} then now() + interval '10 minutes' else c.encode_at end
        where ${sameBytes(damaged)} and c.damaged_at is not null
          and c.sha256 = ${sql.binary(document.sha256)}
          and (${document.blobKey}::text is null or exists (select 1 from blob))
        returning c.id`);
      return row !== null;
    },

    readStatistics: () =>
      db.one(sql.rows(CheckStatisticsRow)`
        /* documentChecks.readStatistics */
        select (select count(*)::integer from checkpoints where damaged_at is not null) as damaged,
          coalesce((select extract(epoch from now() - checked_at)::float8 from checkpoints order by checked_at limit 1), 0)
            as "oldestSeconds"`),
  };
}

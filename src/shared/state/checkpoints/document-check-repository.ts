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

/** Limits of a claim of documents to check. */
interface DocumentClaim extends CheckClaim {
  /** No document is claimed once the documents before it reach this many bytes to read. The first document is always claimed. */
  readonly bytes: number;
}

export type DocumentCheckRepository = ReturnType<typeof createDocumentCheckRepository>;

/** Records when the bytes of checkpoints were last verified, and which of them are damaged. */
export function createDocumentCheckRepository(db: Queryable) {
  /** The condition that the row still points at the bytes that were checked. */
  const sameBytes = ({ id, codec, blobKey, inlineBytes }: CheckpointRow) => sql.fragment`
    c.id = ${id} and c.codec = ${codec} and c.blob_key is not distinct from ${blobKey}::text
    and c.inline_bytes is not distinct from ${inlineBytes ? sql.binary(inlineBytes) : null}::bytea`;

  // An encoded version is read through the versions to which it refers. The size of its text is closer to that than its stored bytes.
  const bytesRead = sql.fragment`(case when codec = ${chunksCodec} then size_bytes else stored_bytes end)`;

  return {
    /**
     * Claims documents that are due: damaged ones first, then the least recently verified. No other process can claim them until the
     * claim expires. No locks are kept.
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

    /** Ids of all documents, in order, after the given id. */
    listAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listAfter */ select id from checkpoints where id > ${after}::uuid order by id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Lists stacks with a state, including deleted ones that can be restored, in order, after the given id. */
    listStacksAfter: async (after: string, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listStacksAfter */
        select id from stacks where id > ${after}::uuid and coalesce(checkpoint_id, deleted_checkpoint_id) is not null
        order by id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Returns the id of the newest state of a stack; null if there is none. */
    findHead: async (stackId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(Type.Object({ id: Nullable(Type.String()) }))`
        /* documentChecks.findHead */
        select coalesce(checkpoint_id, deleted_checkpoint_id) as id from stacks where id = ${stackId}`);
      return row?.id ?? null;
    },

    /** Lists updates of a stack in order of creation, after the update with this number. */
    listUpdates: (stackId: string, after: number, limit: number) =>
      db.any(sql.rows(UpdateRow)`
        /* documentChecks.listUpdates */
        select id, number from updates where stack_id = ${stackId} and number > ${after}::bigint order by number limit ${limit}`),

    /** Ids of the documents of these updates. */
    listOfUpdates: async (updateIds: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listOfUpdates */
        select id from checkpoints where update_id = any (${sql.array([...updateIds], 'uuid')})`);
      return rows.map((row) => row.id);
    },

    /** Ids of a stack's documents that belong to no update, i.e. the state with which the stack was created. */
    listFirst: async (stackId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* documentChecks.listFirst */ select id from checkpoints where stack_id = ${stackId} and update_id is null`);
      return rows.map((row) => row.id);
    },

    /** Records that the bytes are intact. */
    markIntact: (checkpoint: CheckpointRow) =>
      db.query(sql.nothing`
        /* documentChecks.markIntact */
        update checkpoints c set checked_at = now(), damaged_at = null where ${sameBytes(checkpoint)}`),

    /** Records that the bytes are damaged. Returns null if the row is gone or now points at other bytes. */
    quarantine: (checkpoint: CheckpointRow) =>
      db.maybeOne(sql.rows(MarkedRow)`
        /* documentChecks.quarantine */
        with before as (select damaged_at from checkpoints c where ${sameBytes(checkpoint)} for no key update)
        update checkpoints c set checked_at = now(), damaged_at = coalesce(c.damaged_at, now())
        from before where ${sameBytes(checkpoint)}
        returning before.damaged_at is null as "isNew"`),

    /** Returns the stack and the stack version whose state is this checkpoint; null if the checkpoint is gone. */
    findOwner: (id: string) =>
      db.maybeOne(sql.rows(OwnerRow)`
        /* documentChecks.findOwner */
        select o.name as organization, p.name as project, s.name as stack, u.stack_version as "stackVersion"
        from checkpoints c join stacks s on s.id = c.stack_id join projects p on p.id = s.project_id
        join organizations o on o.id = p.organization_id left join updates u on u.id = c.update_id
        where c.id = ${id}`),

    /** Returns the current checkpoint of an update. */
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

    /**
     * Replaces a damaged document by one with the same hash. Requires that the row still points at the damaged bytes and that the new
     * blob is not pending deletion. Returns whether the document was replaced.
     */
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

    /** Number of damaged documents, and the age of the oldest check in seconds. */
    readStatistics: () =>
      db.one(sql.rows(CheckStatisticsRow)`
        /* documentChecks.readStatistics */
        select (select count(*)::integer from checkpoints where damaged_at is not null) as damaged,
          coalesce((select extract(epoch from now() - checked_at)::float8 from checkpoints order by checked_at limit 1), 0)
            as "oldestSeconds"`),
  };
}

import { type TSchema, Type } from 'typebox';
import { isPool, plannedOnce, type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Bytes, Nullable } from '../../platform/schema/standard-schema.ts';
import { onLockedStack } from '../../stacks/stack-repository.ts';
import { fenceHolds, type LeaseFence } from '../../updates/fence.ts';
import { isNoPreview } from '../../updates/preview-fragments.ts';
import type { StoredDocument } from './document-store.ts';

export const CheckpointRow = Type.Object({
  id: Type.String(),
  updateId: Nullable(Type.String()),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  storedBytes: Type.Integer(),
  codec: Type.String(),
  resourceCount: Type.Integer(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
  /** Whether the bytes are known to be damaged. */
  damaged: Type.Boolean(),
  /** Verified, or found damaged, within the last minute. */
  checkedJustNow: Type.Boolean(),
});
export type CheckpointRow = Row<typeof CheckpointRow>;

export const checkpointColumns = sql.fragment`
  id, update_id as "updateId", sha256, size_bytes as "sizeBytes", stored_bytes as "storedBytes", codec,
  resource_count as "resourceCount", inline_bytes as "inlineBytes", blob_key as "blobKey",
  damaged_at is not null as damaged, checked_at > now() - interval '1 minute' as "checkedJustNow"`;

const IdRow = Type.Object({ id: Type.String() });
const CommittedRow = Type.Object({
  id: Type.String(),
  /** See RollbackState.beginWrite. */
  position: Nullable(Type.Integer()),
});
export type CommittedCheckpoint = Row<typeof CommittedRow>;

export interface NewCheckpoint {
  readonly document: StoredDocument;
  readonly resourceCount: number;
}

export interface CheckpointOrder {
  /** For verbatim and delta writes: must be greater than the last accepted number. */
  readonly sequenceNumber: number | null;
  /** For full writes: must be greater than the last committed number. */
  readonly arrivalSequence: number | null;
  /** For delta writes: the state that the delta was computed against. */
  readonly baseCheckpointId: string | null;
}

export interface CompactionOutcome {
  /** Why entries could not be replayed. */
  readonly error: string | null;
  /** Describes entries that were skipped without an error. */
  readonly warning: string | null;
  /** For an ended update: this compaction may replace one of as many or more entries, if no other update is running. */
  readonly isNew: boolean;
}

export type CheckpointRepository = ReturnType<typeof createCheckpointRepository>;

/**
 * A write adds a row and points the update and the stack at it. Afterwards, only the location of the bytes and the results of checks change
 * in the row (`DocumentCheckRepository`).
 */
export function createCheckpointRepository(db: Queryable) {
  const values = ({ document, resourceCount }: NewCheckpoint) => sql.fragment`
    ${sql.binary(document.sha256)}, ${document.sizeBytes}::bigint, ${document.storedBytes}::bigint, ${document.codec}::text,
    ${resourceCount}::integer, ${document.inlineBytes ? sql.binary(document.inlineBytes) : null}::bytea, ${document.blobKey}::text`;

  const valueColumns = sql.fragment`sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes, blob_key`;

  // Protects the blob from the sweep until the transaction ends. Selects no row if the sweep came first.
  const liveBlob = (blobKey: string | null) => sql.fragment`
    (select key from blobs where key = ${blobKey}::text and pending_deletion_since is null for key share)`;

  // Documents in rows and in blobs have separate statements: Postgres would plan a common one anew for each document in a row.
  const named = <S extends TSchema>(name: string, { document: { blobKey } }: NewCheckpoint, row: S) => ({
    statement: sql.prepared(blobKey === null ? name : `${name}_blob`, row),
    withBlob: blobKey === null ? sql.fragment`` : sql.fragment`blob as ${liveBlob(blobKey)},`,
    hasBlob: blobKey === null ? sql.fragment`` : sql.fragment`and exists (select 1 from blob)`,
  });

  // A running update started from the current state, and its writes build on it.
  const noneRuns = sql.fragment`
    not exists (
      select 1 from updates r where r.stack_id = u.stack_id and r.id <> u.id and r.exclusive and r.status = 'running'
    )`;

  return {
    find: (id: string) =>
      db.maybeOne(sql.prepared('checkpoints_find', CheckpointRow)`
        /* checkpoints.find */ select ${checkpointColumns} from checkpoints where id = ${id}`),

    /**
     * Requires that the fence and the order hold. One statement locks the stack, the update and the checkpoint, in this order. Returns null
     * if nothing was changed.
     */
    commit: async (
      fence: LeaseFence,
      checkpoint: NewCheckpoint,
      write: CheckpointOrder,
    ): Promise<CommittedCheckpoint | null> => {
      const { hasBlob, statement, withBlob } = named('checkpoints_commit', checkpoint, CommittedRow);
      return db.maybeOne(statement`
        /* checkpoints.commit */
        with stack as (select id from stacks where id = ${fence.stackId} and deleted_at is null for update),
        ${withBlob}
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id from updates u join stack on stack.id = u.stack_id
          where ${fenceHolds(fence)} and u.exclusive and ${isNoPreview}
            and (${write.sequenceNumber}::integer is null or u.checkpoint_sequence < ${write.sequenceNumber}::integer)
            and (${write.arrivalSequence}::integer is null or u.full_committed < ${write.arrivalSequence}::integer)
            and (${write.baseCheckpointId}::uuid is null or u.checkpoint_id = ${write.baseCheckpointId}::uuid) ${hasBlob}
          for update of u
        ),
        written as (
          insert into checkpoints (stack_id, update_id, sequence_number, ${valueColumns})
          select f.stack_id, f.id, ${write.sequenceNumber}::integer, ${values(checkpoint)} from fenced f
          returning id
        ),
        moved as (
          update updates u set checkpoint_id = w.id, checkpoint_sequence = coalesce(${write.sequenceNumber}::integer, u.checkpoint_sequence),
            full_committed = coalesce(${write.arrivalSequence}::integer, u.full_committed)
          from written w, fenced f where u.id = f.id
        ),
        head as (
          update stacks s set checkpoint_id = w.id, updated_at = now() from written w, fenced f where s.id = f.stack_id
        ),
        -- All others of this update: with concurrent writers, one may not see the row of the previous one.
        superseded as (
          delete from checkpoints c using fenced f, written w where c.update_id = f.id and c.id <> w.id
        )
        select id, write_position() as position from written`);
    },

    /**
     * The checkpoint includes the first `compactedEntries` entries. Requires that the update still has `foundCheckpointId`. Unless the
     * outcome is new, the update must still run. Moves the stack's head if the head was this update's state and there is no newer version.
     * Releases the claim. Keeps the previous checkpoint as long as other updates of the stack refer to it. Unless the outcome is new, the
     * commit does not wait for the disk: commits that acknowledge something to a client come later in the log, and if Postgres crashes
     * before them, the journal still has the entries.
     */
    commitCompaction: async (
      compaction: {
        updateId: string;
        stackId: string;
        foundCheckpointId: string | null;
        compactedEntries: number;
        outcome: CompactionOutcome;
      },
      checkpoint: NewCheckpoint,
    ): Promise<string | null> => {
      const { hasBlob, statement, withBlob } = named('checkpoints_commit_compaction', checkpoint, IdRow);
      // In a transaction, the setting would outlast the statement.
      const isLazy = !compaction.outcome.isNew && isPool(db);
      const commit = (on: Queryable) =>
        on.maybeOne(statement`
        /* checkpoints.commitCompaction */
        with ${plannedOnce(on)},
        quick as materialized (
          select set_config('synchronous_commit', case when ${isLazy}::boolean then 'off' else current_setting('synchronous_commit') end, true)
        ),
        stack as (select id from stacks where id = ${compaction.stackId} and deleted_at is null for update),
        ${withBlob}
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id, u.stack_version,
            nullif(concat_ws('; ', describe_missing_entries(u.missing_entries), ${compaction.outcome.warning}::text), '') as warning
          from planned_once, quick, updates u join stack on stack.id = u.stack_id join journals j on j.update_id = u.id
          where u.id = ${compaction.updateId} and u.checkpoint_id is not distinct from ${compaction.foundCheckpointId}::uuid
            and case when ${compaction.outcome.isNew} then ${noneRuns}
              -- While it runs, no other update starts from its state.
              else u.status = 'running' and j.compacted_entries < ${compaction.compactedEntries} end ${hasBlob}
          for update of u, j
        ),
        written as (
          insert into checkpoints (stack_id, update_id, ${valueColumns})
          select f.stack_id, f.id, ${values(checkpoint)} from fenced f returning id
        ),
        moved as (
          update updates u set checkpoint_id = w.id from written w, fenced f where u.id = f.id
        ),
        counted as (
          update journals j set compacted_entries = ${compaction.compactedEntries}, compaction_error = ${compaction.outcome.error}::text,
            compaction_warning = f.warning, compacted_at = null,
            -- Only what an operator has seen is accepted.
            accepted_at = case
              when (j.compaction_error, j.compaction_warning) is not distinct from (${compaction.outcome.error}::text, f.warning) then j.accepted_at
            end,
            compaction_claim = null, compaction_claimed_until = null
          from written w, fenced f where j.update_id = f.id
        ),
        head as (
          update stacks s set checkpoint_id = w.id, updated_at = now() from written w, fenced f
          where s.id = f.stack_id and s.checkpoint_id is not distinct from f.checkpoint_id and s.stack_version <= f.stack_version
        ),
        superseded as (
          delete from checkpoints c using fenced f, written w where c.update_id = f.id and c.id <> w.id
            and not exists (
              select 1 from updates o where o.id <> f.id and o.exclusive and (o.base_checkpoint_id = c.id or o.checkpoint_id = c.id)
            )
        )
        select id from written`);
      const row = await (compaction.outcome.isNew ? onLockedStack(db, compaction.stackId, commit) : commit(db));
      return row?.id ?? null;
    },

    /**
     * Replaces a damaged document by another document of the same state, wherever an update of the stack, its head or the bundle refers to
     * it, even if the stack is deleted. Returns null if the update now has another checkpoint, or does not own this one.
     */
    replace: async (
      damaged: { updateId: string; stackId: string; foundCheckpointId: string },
      checkpoint: NewCheckpoint,
    ): Promise<string | null> => {
      const statement = sql.rows(IdRow)`
        /* checkpoints.replace */
        with blob as ${liveBlob(checkpoint.document.blobKey)},
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id
          from updates u join checkpoints c on c.id = u.checkpoint_id and c.update_id = u.id
          where u.id = ${damaged.updateId} and u.stack_id = ${damaged.stackId} and u.checkpoint_id = ${damaged.foundCheckpointId}::uuid
            and (${checkpoint.document.blobKey}::text is null or exists (select 1 from blob))
          for update of u
        ),
        written as (
          insert into checkpoints (stack_id, update_id, ${valueColumns})
          select f.stack_id, f.id, ${values(checkpoint)} from fenced f returning id
        ),
        moved as (
          update updates u set
            checkpoint_id = case when u.checkpoint_id = f.checkpoint_id then w.id else u.checkpoint_id end,
            base_checkpoint_id = case when u.base_checkpoint_id = f.checkpoint_id then w.id else u.base_checkpoint_id end
          from written w, fenced f
          where u.stack_id = f.stack_id and (u.checkpoint_id = f.checkpoint_id or u.base_checkpoint_id = f.checkpoint_id)
        ),
        unread as (update journals j set compacted_at = null from written w, fenced f where j.update_id = f.id),
        head as (
          update stacks s set
            checkpoint_id = case when s.checkpoint_id = f.checkpoint_id then w.id else s.checkpoint_id end,
            deleted_checkpoint_id = case when s.deleted_checkpoint_id = f.checkpoint_id then w.id else s.deleted_checkpoint_id end,
            updated_at = now()
          from written w, fenced f
          where s.id = f.stack_id and f.checkpoint_id in (s.checkpoint_id, s.deleted_checkpoint_id)
        ),
        bundled as (
          update bundled_stacks b set checkpoint_id = w.id from written w, fenced f
          where b.stack_id = f.stack_id and b.checkpoint_id = f.checkpoint_id
        ),
        superseded as (delete from checkpoints c using fenced f, written w where c.id = f.checkpoint_id)
        select id from written`;
      const row = await onLockedStack(db, damaged.stackId, (tx) => tx.maybeOne(statement));
      return row?.id ?? null;
    },

    /** For an update made in the same transaction (import, rename, initial state). Returns null if the blob is pending deletion. */
    insert: async (
      owner: { stackId: string; updateId: string | null },
      checkpoint: NewCheckpoint,
    ): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* checkpoints.insert */
        with blob as ${liveBlob(checkpoint.document.blobKey)},
        written as (
          insert into checkpoints (stack_id, update_id, ${valueColumns})
          select ${owner.stackId}::uuid, ${owner.updateId}::uuid, ${values(checkpoint)}
          where ${checkpoint.document.blobKey}::text is null or exists (select 1 from blob) returning id
        ), moved as (
          update updates u set checkpoint_id = w.id from written w where u.id = ${owner.updateId}::uuid
        )
        select id from written`);
      return row?.id ?? null;
    },
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import type { LeaseFence } from '../updates/lease.ts';
import type { StoredDocument } from './document-store.ts';

const CheckpointRow = Type.Object({
  id: Type.String(),
  updateId: Nullable(Type.String()),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  storedBytes: Type.Integer(),
  codec: Type.String(),
  resourceCount: Type.Integer(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
});
export type CheckpointRow = Row<typeof CheckpointRow>;

const IdRow = Type.Object({ id: Type.String() });

export interface NewCheckpoint {
  readonly document: StoredDocument;
  readonly resourceCount: number;
}

/** What a write must find to be committed. */
export interface CheckpointOrder {
  /** Of verbatim and delta writes: must be above the last accepted one. */
  readonly sequenceNumber: number | null;
  /** Of full writes: must be above the last committed one. */
  readonly fullOrder: number | null;
  /** Of delta writes: the state they were computed against. */
  readonly baseCheckpointId: string | null;
}

export type CheckpointRepository = ReturnType<typeof createCheckpointRepository>;

/** Checkpoints. A row is never changed; writes add one and move the pointers of update and stack to it. */
export function createCheckpointRepository(db: Queryable) {
  const columns = sql.fragment`
    id, update_id as "updateId", sha256, size_bytes as "sizeBytes", stored_bytes as "storedBytes", codec,
    resource_count as "resourceCount", inline_bytes as "inlineBytes", blob_key as "blobKey"`;

  const values = ({ document, resourceCount }: NewCheckpoint) => sql.fragment`
    ${sql.binary(document.sha256)}, ${document.sizeBytes}::bigint, ${document.storedBytes}::bigint, ${document.codec}::text,
    ${resourceCount}::integer, ${document.inlineBytes ? sql.binary(document.inlineBytes) : null}::bytea, ${document.blobKey}::text`;

  const valueColumns = sql.fragment`sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes, blob_key`;

  // Held against the sweep until the transaction ends; no row when the sweep was first.
  const liveBlob = (blobKey: string | null) => sql.fragment`
    (select key from blobs where key = ${blobKey}::text and condemned_at is null for key share)`;

  return {
    find: (id: string) =>
      db.maybeOne(sql.rows(CheckpointRow)`/* checkpoints.find */ select ${columns} from checkpoints where id = ${id}`),

    /**
     * Commits one write of a running update, if its fence still holds: the lease is alive in the same epoch, the sequence
     * number is new, and the state is still the one that a delta was computed against. One statement, lock order stack,
     * update, checkpoint. Returns the new checkpoint's id, or null when nothing was changed.
     */
    commit: async (fence: LeaseFence, checkpoint: NewCheckpoint, write: CheckpointOrder): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* checkpoints.commit */
        with stack as (select id from stacks where id = ${fence.stackId} for update),
        blob as ${liveBlob(checkpoint.document.blobKey)},
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id from updates u join stack on stack.id = u.stack_id
          where u.id = ${fence.updateId} and u.status = 'running' and u.epoch = ${fence.epoch}
            and u.expires_at > clock_timestamp() and u.exclusive and not u.dry_run and u.kind <> 'preview'
            and (${write.sequenceNumber}::integer is null or u.checkpoint_sequence < ${write.sequenceNumber}::integer)
            and (${write.fullOrder}::integer is null or u.full_committed < ${write.fullOrder}::integer)
            and (${write.baseCheckpointId}::uuid is null or u.checkpoint_id = ${write.baseCheckpointId}::uuid)
            and (${checkpoint.document.blobKey}::text is null or exists (select 1 from blob))
          for update of u
        ),
        written as (
          insert into checkpoints (stack_id, update_id, sequence_number, ${valueColumns})
          select f.stack_id, f.id, ${write.sequenceNumber}::integer, ${values(checkpoint)} from fenced f
          returning id
        ),
        moved as (
          update updates u set checkpoint_id = w.id, checkpoint_sequence = coalesce(${write.sequenceNumber}::integer, u.checkpoint_sequence),
            full_committed = coalesce(${write.fullOrder}::integer, u.full_committed)
          from written w, fenced f where u.id = f.id
        ),
        head as (
          update stacks s set checkpoint_id = w.id, updated_at = now() from written w, fenced f where s.id = f.stack_id
        ),
        -- All others of this update: of writers at once, one may not see the row of the one just before it.
        superseded as (
          delete from checkpoints c using fenced f, written w where c.update_id = f.id and c.id <> w.id
        )
        select id from written`);
      return row?.id ?? null;
    },

    /**
     * Commits the fold of an update's journal: the first `foldedEntries` entries are in this checkpoint. Only if the update
     * still has the checkpoint that the fold found. Works for ended updates too: their journal was accepted before.
     * The stack's head follows when it was this update's state.
     */
    commitFold: async (
      fold: { updateId: string; stackId: string; foundCheckpointId: string | null; foldedEntries: number },
      checkpoint: NewCheckpoint,
    ): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* checkpoints.commitFold */
        with stack as (select id from stacks where id = ${fold.stackId} for update),
        blob as ${liveBlob(checkpoint.document.blobKey)},
        fenced as (
          select u.id, u.stack_id, u.checkpoint_id from updates u join stack on stack.id = u.stack_id
          where u.id = ${fold.updateId} and u.checkpoint_id is not distinct from ${fold.foundCheckpointId}::uuid
            and u.folded_entries < ${fold.foldedEntries}
            and (${checkpoint.document.blobKey}::text is null or exists (select 1 from blob))
          for update of u
        ),
        written as (
          insert into checkpoints (stack_id, update_id, ${valueColumns})
          select f.stack_id, f.id, ${values(checkpoint)} from fenced f returning id
        ),
        moved as (
          update updates u set checkpoint_id = w.id, folded_entries = ${fold.foldedEntries}
          from written w, fenced f where u.id = f.id
        ),
        head as (
          update stacks s set checkpoint_id = w.id, updated_at = now() from written w, fenced f
          where s.id = f.stack_id and s.checkpoint_id is not distinct from f.checkpoint_id
        ),
        superseded as (
          delete from checkpoints c using fenced f, written w where c.update_id = f.id and c.id <> w.id
        )
        select id from written`);
      return row?.id ?? null;
    },

    /** Adds the checkpoint of an update made in the same transaction (import, rename, initial state); null when its blob is condemned. */
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

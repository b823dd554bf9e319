import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../platform/db/sql.ts';
import { Bytes, Nullable } from '../../../platform/schema/standard-schema.ts';

const ChunkRow = Type.Object({
  id: Type.Integer(),
  depth: Type.Integer(),
  /** Hex digits. */
  cutKey: Nullable(Type.String()),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
});
export type ChunkRow = Row<typeof ChunkRow>;

const StoredChunkRow = Type.Object({
  id: Type.Integer(),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  codec: Type.String(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
});
export type StoredChunkRow = Row<typeof StoredChunkRow>;

const IdRow = Type.Object({ id: Type.Integer() });
const MarkedRow = Type.Object({ id: Type.Integer(), baseId: Nullable(Type.Integer()) });
const CountRow = Type.Object({ count: Type.Integer() });

export interface ChunkLocation {
  readonly storedBytes: number;
  readonly codec: string;
  readonly inlineBytes: Buffer | null;
  readonly blobKey: string | null;
}

export type ChunkRepository = ReturnType<typeof createChunkRepository>;

/** Chunks are parts of the texts of older versions. Most are compressed against a chunk of an earlier version. */
export function createChunkRepository(db: Queryable) {
  const columns = sql.fragment`
    p.id, p.depth, encode(p.cut_key, 'hex') as "cutKey", p.sha256, p.size_bytes as "sizeBytes"`;
  return {
    /** In order; none if the checkpoint is not encoded, or gone. */
    list: (checkpointId: string): Promise<readonly ChunkRow[]> =>
      db.any(sql.prepared('chunks_list', ChunkRow)`
        /* chunks.list */
        select ${columns} from checkpoint_chunks c join version_chunks p on p.id = c.chunk_id
        where c.checkpoint_id = ${checkpointId} order by c.place`),

    /** The first chunk of the encoded versions from this number on. */
    findFirst: async (stackId: string, fromNumber: number): Promise<number | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* chunks.findFirst */
        select min(p.chunk_id) as id from checkpoint_chunks p
        where p.checkpoint_id = (
          select c.id from checkpoints c where c.stack_id = ${stackId} and c.encoded_number >= ${fromNumber}::integer
          order by c.encoded_number limit 1)
        having count(*) > 0`);
      return row?.id ?? null;
    },

    /** The chunks to decode in order; the requested one comes last. Empty if it is gone. Runs for each chunk of an export. */
    readChain: (id: number): Promise<readonly StoredChunkRow[]> =>
      db.any(sql.prepared('chunks_read_chain', StoredChunkRow)`
        /* chunks.readChain */
        with recursive chain as (
          select p.id, p.base_id, 0 as step from version_chunks p where p.id = ${id}
          union all
          select b.id, b.base_id, c.step + 1 from chain c join version_chunks b on b.id = c.base_id
        )
        select p.id, p.sha256, p.size_bytes as "sizeBytes", p.codec, p.inline_bytes as "inlineBytes", p.blob_key as "blobKey"
        from chain c join version_chunks p on p.id = c.id order by c.step desc`),

    findStored: (blobKey: string): Promise<ChunkRow | null> =>
      db.maybeOne(sql.rows(ChunkRow)`
        /* chunks.findStored */ select ${columns} from version_chunks p where p.blob_key = ${blobKey} limit 1`),

    /** A chunk of the stack with at least this id. */
    findText: (
      stackId: string,
      firstId: number,
      text: { sha256: Buffer; sizeBytes: number },
    ): Promise<ChunkRow | null> =>
      db.maybeOne(sql.rows(ChunkRow)`
        /* chunks.findText */
        select ${columns} from version_chunks p
        where p.stack_id = ${stackId} and p.sha256 = ${sql.binary(text.sha256)} and p.size_bytes = ${text.sizeBytes}
          and p.id >= ${firstId}::bigint
        order by p.depth, p.id limit 1`),

    /** In ascending order. */
    reserveIds: async (count: number): Promise<number[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* chunks.reserveIds */
        select nextval(pg_get_serial_sequence('version_chunks', 'id')) as id from generate_series(1, ${count}::integer)`);
      return rows.map(({ id }) => id).sort((a, b) => a - b);
    },

    /** The new bytes need no base. Returns false if the row no longer has the damaged bytes, or if the new blob is pending deletion. */
    replace: async (damaged: StoredChunkRow, { storedBytes, codec, inlineBytes, blobKey }: ChunkLocation) => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* chunks.replace */
        with blob as (select key from blobs where key = ${blobKey}::text and pending_deletion_since is null for key share)
        update version_chunks p set base_id = null, depth = 0, stored_bytes = ${storedBytes}::bigint, codec = ${codec},
          inline_bytes = ${inlineBytes ? sql.binary(inlineBytes) : null}::bytea, blob_key = ${blobKey}::text
        where p.id = ${damaged.id} and p.blob_key is not distinct from ${damaged.blobKey}::text
          and p.inline_bytes is not distinct from ${damaged.inlineBytes ? sql.binary(damaged.inlineBytes) : null}::bytea
          and (${blobKey}::text is null or exists (select 1 from blob))
        returning p.id`);
      return row !== null;
    },

    /**
     * Deletes marked chunks that nothing needs; clears the mark of the others. Does not wait for transactions that release chunks. Returns
     * the number of deleted and cleared chunks.
     */
    sweep: (limit: number): Promise<number> =>
      db.transaction(async (tx) => {
        const marked = await tx.any(sql.rows(MarkedRow)`
          /* chunks.lockMarked */
          select id, base_id as "baseId" from version_chunks where unreferenced_since is not null
          order by unreferenced_since limit ${limit} for update skip locked`);
        if (marked.length === 0) return 0;
        const ids = marked.map(({ id }) => id);
        const bases = marked.flatMap(({ baseId }) => baseId ?? []);
        // The deletion of a chunk marks its base.
        const locked = await tx.any(sql.rows(IdRow)`
          /* chunks.lockBases */
          select id from version_chunks where id = any(${sql.array(bases, 'int8')}) for no key update skip locked`);
        // A separate statement sees the references that were released before the locks. Later releases wait for the locks.
        const { count } = await tx.one(sql.rows(CountRow)`
          /* chunks.sweep */
          with marked as materialized (
            select p.id, p.base_id, exists (select 1 from checkpoint_chunks c where c.chunk_id = p.id)
                or exists (select 1 from version_chunks d where d.base_id = p.id) as needed
            from version_chunks p where p.id = any(${sql.array(ids, 'int8')})
          ),
          kept as (
            update version_chunks p set unreferenced_since = null from marked m where p.id = m.id and m.needed returning p.id),
          deleted as (
            delete from version_chunks p using marked m
            where p.id = m.id and not m.needed
              and (m.base_id is null or m.base_id = any(${sql.array(
                locked.map(({ id }) => id),
                'int8',
              )}))
            returning p.id)
          select ((select count(*) from kept) + (select count(*) from deleted))::integer as count`);
        return count;
      }),
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import type { CheckpointRow } from './checkpoints/checkpoint-repository.ts';
import type { ChunkLocation } from './checkpoints/chunks/chunk-repository.ts';
import { chunksCodec } from './checkpoints/document-store.ts';

const DueRow = Type.Object({ id: Type.String(), encodeAt: Type.String() });
export type DueState = Row<typeof DueRow>;

const SubjectRow = Type.Object({
  id: Type.String(),
  stackId: Type.String(),
  codec: Type.String(),
  sha256: Type.Unsafe<Buffer>(Type.Any()),
  sizeBytes: Type.Integer(),
  storedBytes: Type.Integer(),
  damaged: Type.Boolean(),
  isDeleted: Type.Boolean(),
  isRestorable: Type.Boolean(),
  isHead: Type.Boolean(),
  /** An update that has not ended for good may read the state repeatedly. */
  isInUse: Type.Boolean(),
  previousId: Nullable(Type.String()),
});
export type VersionRow = Row<typeof SubjectRow>;

const NumberRow = Type.Object({ number: Type.Integer() });
const EncodedRow = Type.Object({ id: Type.String(), number: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });

/** `added` is null for an existing chunk. */
export interface NewChunk {
  readonly id: number;
  readonly added: {
    readonly baseId: number | null;
    readonly depth: number;
    readonly cutKey: string | null;
    readonly sha256: Buffer;
    readonly sizeBytes: number;
    readonly location: ChunkLocation;
  } | null;
}

export type VersionRepository = ReturnType<typeof createVersionRepository>;

/** Older versions are encoded as chunks. */
export function createVersionRepository(db: Queryable) {
  // An update that uses the state runs, or its journal may still be replayed. The state is read again, or replaced.
  const inUse = sql.fragment`
    exists (
      select 1 from updates u where (u.checkpoint_id = c.id or u.base_checkpoint_id = c.id)
        and (u.status in ('not started', 'running')
          or exists (select 1 from journals j where j.update_id = u.id and j.compacted_at is null))
    )`;
  const isHead = sql.fragment`exists (select 1 from stacks h where h.checkpoint_id = c.id)`;
  return {
    /** Oldest first. */
    listDue: (limit: number): Promise<readonly DueState[]> =>
      db.any(sql.rows(DueRow)`
        /* versions.listDue */
        select id, encode_at::text as "encodeAt" from checkpoints where encode_at <= now()
        order by encode_at, created_at limit ${limit}`),

    countDue: (limit: number): Promise<number> =>
      db
        .one(sql.rows(CountRow)`
          /* versions.countDue */
          select count(*)::integer as count from (select 1 from checkpoints where encode_at <= now() limit ${limit}) c`)
        .then(({ count }) => count),

    /** Includes the state from which its update began. */
    find: (id: string): Promise<VersionRow | null> =>
      db.maybeOne(sql.rows(SubjectRow)`
        /* versions.find */
        select c.id, c.stack_id as "stackId", c.codec, c.sha256, c.size_bytes as "sizeBytes", c.stored_bytes as "storedBytes",
          c.damaged_at is not null as damaged, s.deleted_at is not null as "isDeleted",
          s.restorable_until is not null as "isRestorable", ${isHead} as "isHead",
          ${inUse} as "isInUse", o.base_checkpoint_id as "previousId"
        from checkpoints c join stacks s on s.id = c.stack_id left join updates o on o.id = c.update_id
        where c.id = ${id}`),

    /** Does nothing if the state has become due again. */
    settle: ({ id, encodeAt }: DueState) =>
      db.query(sql.nothing`
        /* versions.settle */
        update checkpoints set encode_at = null where id = ${id} and encode_at::text = ${encodeAt}`),

    postpone: ({ id, encodeAt }: DueState, seconds: number) =>
      db.query(sql.nothing`
        /* versions.postpone */
        update checkpoints set encode_at = now() + make_interval(secs => ${seconds})
        where id = ${id} and encode_at::text = ${encodeAt}`),

    nextNumber: (stackId: string): Promise<number> =>
      db
        .one(sql.rows(NumberRow)`
          /* versions.nextNumber */
          select coalesce(max(encoded_number) + 1, 0) as number from checkpoints
          where stack_id = ${stackId} and encoded_number is not null`)
        .then(({ number }) => number),

    /** If this number is gone, finds the next lower one from `first` on. Skips damaged versions. */
    findEncoded: (stackId: string, number: number, first: number) =>
      db.maybeOne(sql.rows(EncodedRow)`
        /* versions.findEncoded */
        select id, encoded_number as number from checkpoints
        where stack_id = ${stackId} and encoded_number between ${first}::integer and ${number}::integer and damaged_at is null
        order by encoded_number desc limit 1`),

    /** Searches from the number `first` on. */
    findSame: (version: VersionRow, first: number) =>
      db.maybeOne(sql.rows(IdRow)`
        /* versions.findSame */
        select id from checkpoints
        where sha256 = ${sql.binary(version.sha256)} and stack_id = ${version.stackId} and encoded_number >= ${first}::integer
          and damaged_at is null limit 1`),

    /**
     * Requires that the version still has the bytes that were read, is not the newest version or in use, that its stack exists, and that no
     * blob of the chunks is pending deletion. One statement; it does not wait for its first lock, the stack's. Returns whether the version
     * was encoded. Throws if another process has used the number.
     */
    encode: async (version: CheckpointRow & { stackId: string }, number: number, chunks: readonly NewChunk[]) => {
      const added = chunks.flatMap(({ id, added: chunk }) => (chunk ? [{ id, ...chunk }] : []));
      const keys = added.flatMap(({ location }) => location.blobKey ?? []);
      const storedBytes = added.reduce((sum, { location }) => sum + location.storedBytes, 0);
      const rows = added.map(
        ({ id, baseId, depth, cutKey, sha256, sizeBytes, location }) => sql.fragment`(
          ${id}::bigint, ${baseId}::bigint, ${depth}::integer, decode(${cutKey}::text, 'hex'), ${sql.binary(sha256)}::bytea,
          ${sizeBytes}::bigint, ${location.storedBytes}::bigint, ${location.codec}::text,
          ${location.inlineBytes ? sql.binary(location.inlineBytes) : null}::bytea, ${location.blobKey}::text)`,
      );
      const inserted =
        rows.length === 0
          ? sql.fragment`select 1`
          : sql.fragment`
            insert into version_chunks (
              stack_id, id, base_id, depth, cut_key, sha256, size_bytes, stored_bytes, codec, inline_bytes, blob_key
            )
            select f.stack_id, n.* from fenced f, (values ${sql.join(rows, sql.fragment`, `)}) as n`;
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* versions.encode */
        with stack as (
          select id from stacks where id = ${version.stackId} and deleted_at is null for key share skip locked
        ),
        live as (
          select key from blobs where key = any(${sql.array(keys, 'text')}) and pending_deletion_since is null for key share
        ),
        fenced as materialized (
          select c.id, c.stack_id from checkpoints c join stack on stack.id = c.stack_id
          where c.id = ${version.id} and c.codec = ${version.codec} and c.damaged_at is null
            and c.blob_key is not distinct from ${version.blobKey}::text
            and c.inline_bytes is not distinct from ${version.inlineBytes ? sql.binary(version.inlineBytes) : null}::bytea
            and not ${isHead} and not ${inUse}
            and (select count(*) from live) = ${keys.length}
          for update of c
        ),
        added as (${inserted}),
        positions as (
          insert into checkpoint_chunks (checkpoint_id, place, chunk_id)
          select f.id, p.place, p.chunk_id from fenced f,
            unnest(${sql.array(
              chunks.map(({ id }) => id),
              'int8',
            )}) with ordinality as p (chunk_id, place)
        )
        update checkpoints c set codec = ${chunksCodec}, inline_bytes = null, blob_key = null,
          stored_bytes = ${storedBytes}::bigint, encoded_number = ${number}::integer, encode_at = null, checked_at = now()
        from fenced f where c.id = f.id returning c.id`);
      return row !== null;
    },
  };
}

import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import { createByteCheckRepository, MarkedRow } from '../state/checkpoints/byte-check-repository.ts';
import type { StoredDocument } from '../state/checkpoints/document-store.ts';

const IdRow = Type.Object({ id: Type.String() });

const SegmentRow = Type.Object({
  id: Type.String(),
  firstSequence: Type.Integer(),
  lastSequence: Type.Integer(),
  /** JSON text of a SegmentIndex. */
  frames: Type.String(),
  sha256: Bytes,
  sizeBytes: Type.Integer(),
  storedBytes: Type.Integer(),
  codec: Type.String(),
  inlineBytes: Nullable(Bytes),
  blobKey: Nullable(Type.String()),
  damaged: Type.Boolean(),
});
export type SegmentRow = Row<typeof SegmentRow>;

const OwnerRow = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  updateId: Type.String(),
});

/** Stored but not yet referenced. */
export interface NewSegment extends StoredDocument {
  readonly updateId: string;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly eventCount: number;
  readonly frames: string;
}

/** Events from `beyond` (exclusive) to `until` (inclusive; null: to the end), in the direction of reading. */
export interface SequenceRange {
  readonly beyond: number;
  readonly until: number | null;
  readonly newestFirst: boolean;
}

export type EventSegmentRepository = ReturnType<typeof createEventSegmentRepository>;

/** A segment has archived events of an ended update. */
export function createEventSegmentRepository(db: Queryable) {
  const columns = sql.fragment`
    g.id, g.first_sequence as "firstSequence", g.last_sequence as "lastSequence", g.frames, g.sha256,
    g.size_bytes as "sizeBytes", g.stored_bytes as "storedBytes", g.codec, g.inline_bytes as "inlineBytes",
    g.blob_key as "blobKey", g.damaged_at is not null as damaged`;

  return {
    ...createByteCheckRepository(db, sql.fragment`event_segments`),

    /**
     * Locks the update. Returns false if the update is running, is gone, or belongs to a stack that cannot be restored; if the segment's
     * blob is pending deletion; or if another segment overlaps its range, because readers rely on the order of segments.
     */
    insert: async (segment: NewSegment): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* eventSegments.insert */
        with blob as (
          select key from blobs where key = ${segment.blobKey}::text and pending_deletion_since is null for key share
        ),
        ended as (
          select u.id from updates u join stacks s on s.id = u.stack_id
          where u.id = ${segment.updateId} and u.status not in ('not started', 'running')
            and (s.deleted_at is null or s.restorable_until is not null)
          for no key update of u
        )
        insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes,
          codec, inline_bytes, blob_key)
        select id, ${segment.firstSequence}::bigint, ${segment.lastSequence}::bigint, ${segment.eventCount}::integer,
          ${segment.frames}, ${sql.binary(segment.sha256)}, ${segment.sizeBytes}::bigint, ${segment.storedBytes}::bigint,
          ${segment.codec}, ${segment.inlineBytes ? sql.binary(segment.inlineBytes) : null}::bytea, ${segment.blobKey}::text
        from ended
        where (${segment.blobKey}::text is null or exists (select 1 from blob))
          and not exists (
            select 1 from event_segments g where g.update_id = ended.id and g.last_sequence >= ${segment.firstSequence}::bigint
              and g.first_sequence <= ${segment.lastSequence}::bigint)
        on conflict (update_id, last_sequence) do nothing
        returning id`);
      return row !== null;
    },

    /** In the direction of reading. */
    list: (updateId: string, { beyond, until, newestFirst }: SequenceRange, limit: number) =>
      newestFirst
        ? db.any(sql.prepared('event_segments_list_newest', SegmentRow)`
            /* eventSegments.listNewest */
            select ${columns} from event_segments g
            where g.update_id = ${updateId} and g.first_sequence < ${beyond} and g.last_sequence >= ${until ?? 0}
            order by g.last_sequence desc limit ${limit}`)
        : db.any(sql.prepared('event_segments_list', SegmentRow)`
            /* eventSegments.list */
            select ${columns} from event_segments g
            where g.update_id = ${updateId} and g.last_sequence > ${beyond}
              and g.first_sequence <= ${until ?? Number.MAX_SAFE_INTEGER}
            order by g.last_sequence limit ${limit}`),

    find: (id: string) =>
      db.maybeOne(sql.rows(SegmentRow)`
        /* eventSegments.find */ select ${columns} from event_segments g where g.id = ${id}`),

    findOwner: (id: string) =>
      db.maybeOne(sql.rows(OwnerRow)`
        /* eventSegments.findOwner */
        select o.name as organization, p.name as project, s.name as stack, u.id as "updateId"
        from event_segments g join updates u on u.id = g.update_id join stacks s on s.id = u.stack_id
        join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where g.id = ${id}`),

    listOfUpdates: async (updateIds: readonly string[]): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* eventSegments.listOfUpdates */
        select id from event_segments where update_id = any (${sql.array([...updateIds], 'uuid')})`);
      return rows.map((row) => row.id);
    },

    /** Returns null if the segment is gone. */
    markDamaged: (id: string) =>
      db.maybeOne(sql.rows(MarkedRow)`
        /* eventSegments.markDamaged */
        with before as (select damaged_at from event_segments where id = ${id} for no key update)
        update event_segments g set checked_at = now(), damaged_at = coalesce(g.damaged_at, now())
        from before where g.id = ${id} returning before.damaged_at is null as "isNew"`),
  };
}

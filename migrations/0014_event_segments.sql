-- Up Migration

-- Events of ended updates, packed: a segment replaces the event rows from its first to its last sequence. Segments of an
-- update never overlap.
create table event_segments (
  id uuid primary key default gen_random_uuid(),
  update_id uuid not null references updates (id) on delete cascade,
  first_sequence bigint not null,
  last_sequence bigint not null,
  event_count integer not null,
  -- JSON text: position, checksum and contents of each compressed frame.
  frames text not null,
  -- Hash and size of all frames decompressed.
  sha256 bytea not null,
  size_bytes bigint not null,
  stored_bytes bigint not null,
  codec text not null,
  -- The frames are either inline or in a blob.
  inline_bytes bytea,
  blob_key text references blobs (key),
  checked_at timestamptz not null default now(),
  damaged_at timestamptz,
  constraint event_segments_place_check check ((inline_bytes is null) <> (blob_key is null)),
  constraint event_segments_range_check check (first_sequence <= last_sequence),
  constraint event_segments_last_key unique (update_id, last_sequence)
);
-- Already compressed, so Postgres should not try.
alter table event_segments alter column inline_bytes set storage external;
create index event_segments_blob on event_segments (blob_key) where blob_key is not null;
create index event_segments_checked on event_segments (checked_at);
create index event_segments_damaged on event_segments (checked_at) where damaged_at is not null;

create trigger event_segments_blob_referenced after insert on event_segments
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger event_segments_blob_released after delete on event_segments
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- The previous release does not know this table. Its sweep and its reconcile job must not take the blob of a segment for
-- an orphan.
create function keep_blob_of_segment() returns trigger language plpgsql as $$
begin
  if exists (select 1 from event_segments where blob_key = new.key) then
    new.unreferenced_since := null;
    new.condemned_at := null;
    new.delete_at := null;
  end if;
  return new;
end $$;
create trigger blobs_kept_for_segment before update on blobs
  for each row when ((new.unreferenced_since is not null and old.unreferenced_since is null)
    or (new.condemned_at is not null and old.condemned_at is null))
  execute function keep_blob_of_segment();

-- Where an update's events are. `backlog`: it is older than this table, and its rows are packed at a set rate. `recent`: its
-- rows are packed some time after its end. `packed`: it has no rows.
alter table updates add column event_rows text not null default 'backlog'
  constraint updates_event_rows_check check (event_rows in ('backlog', 'recent', 'packed'));
alter table updates alter column event_rows set default 'recent';
create index updates_to_pack on updates (event_rows, ended_at, id) where event_rows <> 'packed' and ended_at is not null;

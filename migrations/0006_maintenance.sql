-- Up Migration

-- Blobs are marked when they become unreferenced, so that the sweep never reads blobs in use.
alter table blobs
  -- Since when the blob is unreferenced: set before its upload and when a reference is removed; null while it is referenced.
  -- Only a hint: the references themselves are checked before a blob is condemned.
  add column unreferenced_since timestamptz,
  -- When to delete a condemned blob's object (again).
  add column delete_at timestamptz,
  -- When the object was deleted. The row stays for a grace period because of late uploads.
  add column deleted_at timestamptz;
-- In a separate statement, so that existing rows are neither marked nor rewritten. The reconcile task marks them if needed.
alter table blobs alter column unreferenced_since set default now();

create index blobs_unreferenced on blobs (unreferenced_since) where unreferenced_since is not null and condemned_at is null;
create index blobs_to_delete on blobs (delete_at) where delete_at is not null;

create function note_blob_referenced() returns trigger language plpgsql as $$
begin
  update blobs set unreferenced_since = null where key = new.blob_key and unreferenced_since is not null;
  return null;
end $$;

create function note_blob_released() returns trigger language plpgsql as $$
begin
  update blobs set unreferenced_since = clock_timestamp() where key = old.blob_key;
  return null;
end $$;

-- Row-level triggers: rows without a blob, which are the majority, then only cost the condition.
create trigger checkpoints_blob_referenced after insert on checkpoints
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger checkpoints_blob_replaced after update of blob_key on checkpoints
  for each row when (new.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_referenced();
create trigger checkpoints_blob_dropped after update of blob_key on checkpoints
  for each row when (old.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_released();
create trigger checkpoints_blob_released after delete on checkpoints
  for each row when (old.blob_key is not null) execute function note_blob_released();

create trigger journal_fold_points_blob_referenced after insert on journal_fold_points
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger journal_fold_points_blob_replaced after update of blob_key on journal_fold_points
  for each row when (new.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_referenced();
create trigger journal_fold_points_blob_dropped after update of blob_key on journal_fold_points
  for each row when (old.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_released();
create trigger journal_fold_points_blob_released after delete on journal_fold_points
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- Each sweep runs in one process at a time: the first one that asks when it is due.
create table maintenance_runs (
  name text primary key,
  claimed_by uuid,
  claimed_until timestamptz,
  last_started_at timestamptz,
  last_ended_at timestamptz,
  -- JSON text: position from which to resume an unfinished run; null if the last run was complete.
  place text,
  -- JSON text: result of the last complete run.
  result text
);

-- Identifies this installation in the blob store, so that two installations that share a bucket do not treat each other's
-- objects as orphans.
create table installation (
  id uuid primary key default gen_random_uuid(),
  is_only boolean not null default true,
  constraint installation_is_only_key unique (is_only),
  constraint installation_is_only_check check (is_only)
);
insert into installation default values;

-- A journal that cannot be compacted is retried with growing delays and does not block the others.
alter table journals
  add column fold_attempts integer not null default 0,
  add column next_fold_at timestamptz;

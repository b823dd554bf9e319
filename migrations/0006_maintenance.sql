-- Up Migration

-- What the sweep has to look at is marked as it arises, so that it never reads blobs that are in use.
alter table blobs
  -- Since when nothing refers to the blob: from before its upload, and again from when it lost its last reference. Null while
  -- something does. A mark that says where to look: before a blob is condemned, the references themselves are asked.
  add column unreferenced_since timestamptz,
  -- When a condemned blob's object is to be deleted (again).
  add column delete_at timestamptz,
  -- Since when the object has been deleted; the row stays for a while, for uploads that arrive late.
  add column deleted_at timestamptz;
-- Apart from the above, so that rows of today stay unmarked and are not rewritten: the reconciling job marks what is due.
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

-- For each row, since rows without a blob, which most are, then cost no more than the condition.
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

-- One process at a time does a sweep; whichever is the first to ask when it is due.
create table maintenance_runs (
  name text primary key,
  claimed_by uuid,
  claimed_until timestamptz,
  last_started_at timestamptz,
  last_ended_at timestamptz,
  -- JSON text: where to go on, of a run that takes more than one turn; null when the last one came to its end.
  place text,
  -- JSON text: what the last whole run found.
  result text
);

-- Told apart in the blob store, so that two installations on one bucket do not take each other's objects for orphans.
create table installation (
  id uuid primary key default gen_random_uuid(),
  is_only boolean not null default true,
  constraint installation_is_only_key unique (is_only),
  constraint installation_is_only_check check (is_only)
);
insert into installation default values;

-- A journal that cannot be folded waits longer each time, and holds up no other.
alter table journals
  add column fold_attempts integer not null default 0,
  add column next_fold_at timestamptz;

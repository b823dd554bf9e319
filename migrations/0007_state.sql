-- States of stacks: checkpoints, journals from which they are computed, and older versions.

create table checkpoints (
  id uuid primary key default gen_random_uuid(),
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Null for the state that the stack was created with.
  update_id uuid references updates (id) on delete cascade,
  sequence_number integer,
  -- Hash of the document's bytes as sent by the client.
  sha256 bytea not null,
  size_bytes bigint not null,
  stored_bytes bigint not null,
  codec text not null,
  resource_count integer not null,
  -- The encoded bytes are either inline or in a blob.
  inline_bytes bytea,
  blob_key text references blobs (key),
  -- When to examine this state and the one before it, to encode the one that is no longer the newest; null if done. Most states of a running update
  -- are superseded within this time and never examined.
  encode_at timestamptz default now() + interval '10 minutes',
  -- Its number among the encoded versions of the stack.
  encoded_number integer,
  -- When the document was written or last read back completely; during a check, the time that makes it due again.
  checked_at timestamptz not null default now(),
  -- When its bytes were found to differ from those written. The row keeps pointing to them.
  damaged_at timestamptz,
  created_at timestamptz not null default now(),
  constraint checkpoints_place_check check (
    case when codec = 'chunks' then inline_bytes is null and blob_key is null
    else (inline_bytes is null) <> (blob_key is null) end
  )
);
-- Already compressed, so Postgres should not try.
alter table checkpoints alter column inline_bytes set storage external;
create index checkpoints_update on checkpoints (update_id);
create index checkpoints_blob on checkpoints (blob_key) where blob_key is not null;
create index checkpoints_stack on checkpoints (stack_id);
create index checkpoints_checked on checkpoints (checked_at);
create index checkpoints_damaged on checkpoints (checked_at) where damaged_at is not null;
-- Finds other copies of a damaged document.
create index checkpoints_sha256 on checkpoints (sha256);
create index checkpoints_encode on checkpoints (encode_at, created_at) where encode_at is not null;
create unique index checkpoints_encoded on checkpoints (stack_id, encoded_number) where encoded_number is not null;

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

-- Apart from updates, because the counters change with every batch: it would rewrite a row with many indexes, and events of the same
-- update would wait for it. A row exists as long as the journal does.
create table journals (
  update_id uuid primary key references updates (id) on delete cascade,
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Accepted entries, and how many of them the update's checkpoint includes.
  entry_count integer not null default 0,
  compacted_entries integer not null default 0,
  -- When the update of the journal ended; null while it runs. There are many running updates, and a sweep searches for the others.
  ended_at timestamptz,
  -- When the compacted state of the ended update was verified. Its entries are kept for a grace period from then on.
  compacted_at timestamptz,
  -- Why the journal could not be replayed. Its entries are then kept, and the state stays at the update's checkpoint.
  compaction_error text,
  -- A warning about entries of unknown kinds that the compaction skipped without failing.
  compaction_warning text,
  -- When an operator accepted the state despite compaction_error or compaction_warning.
  accepted_at timestamptz,
  -- Process that compacts the journal, and until when its claim is valid.
  compaction_claim uuid,
  compaction_claimed_until timestamptz,
  -- A journal that cannot be compacted is retried with growing delays and does not block the others.
  compaction_attempts integer not null default 0,
  next_compaction_at timestamptz
) with (fillfactor = 50);
-- No index may include a counter, because every batch changes them.
create index journals_stack on journals (stack_id);
create index journals_uncompacted on journals (stack_id) where compacted_at is null;
create index journals_faulty on journals (stack_id)
  where accepted_at is null and (compaction_error is not null or compaction_warning is not null);
create index journals_kept on journals (greatest(compacted_at, accepted_at))
  where compacted_at is not null and (accepted_at is not null or (compaction_error is null and compaction_warning is null));
-- Ended updates whose journal is to be compacted, in processing order.
create index journals_to_compact on journals (next_compaction_at nulls first, ended_at)
  where compacted_at is null and ended_at is not null;

create table journal_entries (
  update_id uuid not null references updates (id) on delete cascade,
  sequence_id bigint not null,
  entry text not null,
  primary key (update_id, sequence_id)
);

-- Journal snapshots: the replayed state after the first `entries` entries, from which a compaction can resume.
create table journal_snapshots (
  update_id uuid primary key references updates (id) on delete cascade,
  entries integer not null,
  sha256 bytea not null,
  size_bytes bigint not null,
  codec text not null,
  inline_bytes bytea,
  blob_key text references blobs (key),
  checked_at timestamptz not null default now(),
  constraint journal_snapshots_place_check check ((inline_bytes is null) <> (blob_key is null))
);
create index journal_snapshots_blob on journal_snapshots (blob_key) where blob_key is not null;
create index journal_snapshots_checked on journal_snapshots (checked_at);

create trigger journal_snapshots_blob_referenced after insert on journal_snapshots
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger journal_snapshots_blob_replaced after update of blob_key on journal_snapshots
  for each row when (new.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_referenced();
create trigger journal_snapshots_blob_dropped after update of blob_key on journal_snapshots
  for each row when (old.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_released();
create trigger journal_snapshots_blob_released after delete on journal_snapshots
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- Older versions are kept as chunks. A chunk is compressed with an older chunk of the same stack as dictionary, its base.
create table version_chunks (
  -- Lower than that of every chunk that needs it.
  id bigint primary key generated by default as identity,
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Null for a chunk that is compressed alone.
  base_id bigint references version_chunks (id),
  -- Number of other chunks that must be decoded to decode this one.
  depth integer not null,
  -- Identifies the resource with which the chunk begins; null if it does not begin with one.
  cut_key bytea,
  -- Hash and size of the text.
  sha256 bytea not null,
  size_bytes bigint not null,
  stored_bytes bigint not null,
  codec text not null,
  inline_bytes bytea,
  blob_key text references blobs (key),
  -- Since when no version uses it; only a hint for the sweep, which checks the references.
  unreferenced_since timestamptz,
  constraint version_chunks_base_check check (base_id < id),
  constraint version_chunks_place_check check ((inline_bytes is null) <> (blob_key is null))
);
-- Already compressed, so Postgres should not try.
alter table version_chunks alter column inline_bytes set storage external;
create index version_chunks_text on version_chunks (stack_id, sha256);
create index version_chunks_base on version_chunks (base_id) where base_id is not null;
create index version_chunks_blob on version_chunks (blob_key) where blob_key is not null;
create index version_chunks_unreferenced on version_chunks (unreferenced_since) where unreferenced_since is not null;

create trigger version_chunks_blob_referenced after insert on version_chunks
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger version_chunks_blob_replaced after update of blob_key on version_chunks
  for each row when (new.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_referenced();
create trigger version_chunks_blob_dropped after update of blob_key on version_chunks
  for each row when (old.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_released();
create trigger version_chunks_blob_released after delete on version_chunks
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- The chunks of a checkpoint whose codec is 'chunks', in order. Equal texts of a stack share their chunks.
create table checkpoint_chunks (
  checkpoint_id uuid not null references checkpoints (id) on delete cascade,
  place integer not null,
  chunk_id bigint not null references version_chunks (id),
  primary key (checkpoint_id, place)
);
create index checkpoint_chunks_chunk on checkpoint_chunks (chunk_id);

-- Stacks and updates refer to states, and states to them.
alter table stacks add constraint stacks_checkpoint_fkey foreign key (checkpoint_id) references checkpoints (id) on delete set null;
alter table stacks add constraint stacks_deleted_checkpoint_fkey foreign key (deleted_checkpoint_id) references checkpoints (id);
alter table updates add constraint updates_checkpoint_fkey foreign key (checkpoint_id) references checkpoints (id) on delete set null;
alter table updates add constraint updates_base_checkpoint_fkey foreign key (base_checkpoint_id) references checkpoints (id) on delete set null;

-- A write deletes the state that it supersedes, but its snapshot does not include the row of a write that it had to wait for. A query in a trigger
-- sees commits made meanwhile. No row is left to delete here when no other write came in between.
create function delete_superseded_checkpoint() returns trigger language plpgsql as $$
begin
  delete from checkpoints c where c.id = old.checkpoint_id and c.update_id = old.id
    and not exists (select 1 from updates u where u.checkpoint_id = c.id and u.exclusive)
    and not exists (select 1 from updates u where u.base_checkpoint_id = c.id and u.exclusive)
    and not exists (select 1 from stacks s where s.checkpoint_id = c.id)
    and not exists (select 1 from stacks s where s.deleted_checkpoint_id = c.id);
  return null;
end $$;
create trigger updates_checkpoint_superseded after update of checkpoint_id on updates
  for each row when (old.checkpoint_id is not null and new.checkpoint_id is not null and old.checkpoint_id <> new.checkpoint_id)
  execute function delete_superseded_checkpoint();

-- The row of the update is locked before that of its journal, as everywhere.
create function note_update_ended() returns trigger language plpgsql as $$
begin
  update journals set ended_at = coalesce(new.ended_at, clock_timestamp()) where update_id = new.id;
  return null;
end $$;
create trigger updates_ended after update of status on updates
  for each row when (old.status in ('not started', 'running') and new.status not in ('not started', 'running'))
  execute function note_update_ended();

-- Ids of entries that are missing before the last one of a journal with this many entries: the first 20 ranges, and how many more. Null if
-- none is. The CLI numbers its entries from 1 without leaving out any, but they may arrive in another order.
create function missing_journal_entries(of_update uuid, entries integer) returns text language plpgsql stable as $$
declare
  ranges text;
  more bigint;
begin
  if coalesce(entries, 0) = 0 or entries = (select max(sequence_id) from journal_entries where update_id = of_update) then return null; end if;
  select string_agg(case when low = high then low::text else low || '-' || high end, ', ' order by low) filter (where place <= 20),
    greatest(count(*) - 20, 0)
  into ranges, more
  from (
    select low, high, row_number() over (order by low) as place
    from (
      select coalesce(lag(sequence_id) over (order by sequence_id), 0) + 1 as low, sequence_id - 1 as high
      from journal_entries where update_id = of_update
    ) neighbours
    where low <= high
  ) gaps;
  return ranges || case when more > 0 then ' and ' || more || ' more' else '' end;
end $$;

-- The value of journals.compaction_warning for an update that ended with missing entries; null if none were missing.
create function describe_missing_entries(missing text) returns text language sql immutable
return 'journal entries ' || missing || ' are missing. They never arrived, or were lost after they had been acknowledged, as by a restore '
  'or a fail-over of the database. Run pulumi refresh and compare the result with your provider. An operator then runs holdfast admin accept';

create function note_chunk_released() returns trigger language plpgsql as $$
begin
  update version_chunks set unreferenced_since = clock_timestamp()
  where id = old.chunk_id and unreferenced_since is null;
  return null;
end $$;
create trigger checkpoint_chunks_released after delete on checkpoint_chunks
  for each row execute function note_chunk_released();

create function note_base_released() returns trigger language plpgsql as $$
begin
  update version_chunks set unreferenced_since = clock_timestamp()
  where id = old.base_id and unreferenced_since is null;
  return null;
end $$;
create trigger version_chunks_released after delete on version_chunks
  for each row when (old.base_id is not null) execute function note_base_released();
create trigger version_chunks_rebased after update of base_id on version_chunks
  for each row when (old.base_id is not null and new.base_id is distinct from old.base_id)
  execute function note_base_released();

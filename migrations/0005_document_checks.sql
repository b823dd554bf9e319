-- Up Migration

-- Snapshots are a cache of the journals, so delete those without a hash. Their blobs are swept as orphans.
delete from journal_fold_points;
alter table journal_fold_points
  add column sha256 bytea not null,
  add column checked_at timestamptz not null default now();
create index journal_fold_points_checked on journal_fold_points (checked_at);

-- Existing documents have never been checked, so they are due at once.
alter table checkpoints
  -- When the document was written or last read back completely; during a check, the time that makes it due again.
  add column checked_at timestamptz not null default 'epoch',
  -- When its bytes were found to differ from those written. The row keeps pointing to them.
  add column damaged_at timestamptz;
alter table checkpoints alter column checked_at set default now();
create index checkpoints_checked on checkpoints (checked_at);
create index checkpoints_damaged on checkpoints (checked_at) where damaged_at is not null;
-- Finds other copies of a damaged document.
create index checkpoints_sha256 on checkpoints (sha256);

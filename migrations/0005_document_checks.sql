-- Up Migration

-- Fold points are a cache: those without a hash go, the journals have everything. Their blobs are swept as orphans.
delete from journal_fold_points;
alter table journal_fold_points
  add column sha256 bytea not null,
  add column checked_at timestamptz not null default now();
create index journal_fold_points_checked on journal_fold_points (checked_at);

-- What is there already has never been checked: it is due at once.
alter table checkpoints
  -- When the document was written, or last read back whole; while it is being checked, the time that makes it due again.
  add column checked_at timestamptz not null default 'epoch',
  -- Since when its bytes are known not to be those that were written. The row keeps pointing at them.
  add column damaged_at timestamptz;
alter table checkpoints alter column checked_at set default now();
create index checkpoints_checked on checkpoints (checked_at);
create index checkpoints_damaged on checkpoints (checked_at) where damaged_at is not null;
-- Second copies of a damaged document.
create index checkpoints_sha256 on checkpoints (sha256);

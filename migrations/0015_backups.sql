-- Backups that are being made: nothing becomes due for deletion in the blob store meanwhile. A backup renews its row; one that ended without
-- removing it stops counting after some minutes.
create table blob_holds (
  id uuid primary key default gen_random_uuid(),
  held_until timestamptz not null,
  -- The row stops counting after this time, however often it is renewed.
  ends_at timestamptz not null,
  constraint blob_holds_held_check check (held_until <= ends_at)
);

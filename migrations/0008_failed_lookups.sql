-- Up Migration

-- How many wrong tokens and leases were looked up of late, by source: a client's address, or a kind of token. All replicas add to
-- it. An ordinary table, though it is worth little after a crash: a power cut soon after an unlogged one was made can leave files
-- over which Postgres does not start.
create table failed_lookups (
  source text primary key,
  level double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

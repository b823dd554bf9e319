-- Up Migration

-- Recent requests by source: an API token, a user or a client address. Shared by all replicas. Logged for the same reason as
-- failed_lookups.
create table request_levels (
  source text primary key,
  level double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

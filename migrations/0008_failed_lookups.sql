-- Up Migration

-- Recent failed lookups of tokens and leases by source: a client address or a kind of token. Shared by all replicas.
-- A logged table although its content is worth little after a crash: a power failure soon after creating an unlogged table
-- can leave files that keep Postgres from starting.
create table failed_lookups (
  source text primary key,
  level double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

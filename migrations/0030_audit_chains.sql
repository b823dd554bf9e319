-- Up Migration

-- Sealed events: of one organization, one month and one pass of the sealing, in order of their numbers.
create table audit_batches (
  organization_id uuid not null,
  batch bigint not null,
  month date not null,
  -- The pass sealed the events with numbers up to this one.
  through_number bigint not null,
  numbers bigint[] not null,
  -- SHA-256 of each event, in the order of the numbers.
  event_hashes bytea not null,
  previous_hash bytea not null,
  hash bytea not null,
  sealed_at timestamptz not null default now(),
  primary key (organization_id, batch)
);

-- The last batch of each chain, the last one that retention has dropped, and the last one whose hash is in the blob store.
create table audit_chains (
  organization_id uuid primary key,
  batch bigint not null,
  hash bytea not null,
  base_batch bigint not null default 0,
  base_hash bytea not null,
  stored_batch bigint not null default 0
);
create index audit_chains_unstored on audit_chains (organization_id) where stored_batch < batch;

-- How far the events are sealed, and how far they may be once all transactions up to the horizon have ended.
create table audit_sealing (
  only_row boolean primary key default true,
  sealed_through bigint not null default 0,
  horizon_through bigint not null default 0,
  horizon_xid xid8 not null default '0',
  -- Events before this month were dropped by retention.
  dropped_before date not null default '0001-01-01',
  constraint audit_sealing_only_row check (only_row)
);
insert into audit_sealing default values;

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

create index audit_batches_through on audit_batches (through_number, organization_id, batch);

-- The last batch of each chain, the last one that retention has dropped, and the last one whose hash is in the blob store.
create table audit_chains (
  organization_id uuid primary key,
  batch bigint not null,
  hash bytea not null,
  base_batch bigint not null default 0,
  base_hash bytea not null,
  stored_batch bigint not null default 0,
  -- The last batch whose events were exported.
  exported_batch bigint not null default 0
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

-- Drops the events of all months before this one. Returns how many partitions were dropped.
create function drop_audit_months(before date) returns integer language plpgsql as $$
declare
  partition text;
  dropped integer := 0;
begin
  for partition in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_events'::regclass and c.relname ~ '^audit_events_[0-9]{4}_[0-9]{2}$'
      and c.relname < 'audit_events_' || to_char(before, 'YYYY_MM')
    order by c.relname
  loop
    execute format('drop table %I', partition);
    dropped := dropped + 1;
  end loop;
  delete from audit_events_default where occurred_at < before::timestamp at time zone 'UTC';
  return dropped;
end $$;

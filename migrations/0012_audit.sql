-- The audit log.

create sequence audit_event_numbers;

-- The transaction gets its id before the number, so that a transaction that reads the sequence and then takes an id of its own has a later id than
-- every transaction with a number up to there.
create function next_audit_number() returns bigint language plpgsql as $$
begin
  perform pg_current_xact_id();
  return nextval('audit_event_numbers');
end $$;

-- The audit log. Rows are only added; no foreign keys, because they outlive the objects that they name.
create table audit_events (
  number bigint not null default next_audit_number(),
  occurred_at timestamptz not null default clock_timestamp(),
  -- All zeros: the server as a whole.
  organization_id uuid not null,
  organization text not null,
  action text not null,
  outcome text not null,
  actor text not null,
  user_id uuid,
  login text not null,
  token_id uuid,
  token_name text not null,
  sign_in text not null,
  role text not null,
  granted_by text not null,
  address text not null,
  user_agent text not null,
  ci_run text not null,
  object text not null,
  update_id uuid,
  request_id text not null,
  -- JSON text.
  details text not null,
  primary key (number, occurred_at),
  constraint audit_events_outcome_check check (outcome in ('done', 'refused')),
  constraint audit_events_actor_check check (actor in ('user', 'operator', 'server'))
) partition by range (occurred_at);
create index audit_events_listed on audit_events (organization_id, occurred_at, number);
create index audit_events_by_login on audit_events (organization_id, login, occurred_at, number);
create index audit_events_by_action on audit_events (organization_id, action, occurred_at, number);

-- Takes what no partition covers: a missing one must not stop a write.
create table audit_events_default partition of audit_events default;

-- Secrets that an update has read so far. When it ends, the row becomes one event of the audit log.
create table audit_secret_reads (
  update_id uuid primary key,
  organization text not null,
  object text not null,
  -- JSON text: the reader.
  source text not null,
  calls integer not null,
  read_values integer not null,
  names text[] not null
);

-- Turns the secret reads of each of these updates into one event. Call in the transaction that ends them. The details have no spaces, like all
-- details.
create function close_secret_reads(of_updates uuid[]) returns void language plpgsql as $$
begin
  with read as (delete from audit_secret_reads r where r.update_id = any (of_updates) returning r.*)
  insert into audit_events (organization_id, organization, action, outcome, actor, user_id, login, token_id, token_name, sign_in, role,
    granted_by, address, user_agent, ci_run, object, update_id, request_id, details)
  select coalesce(o.id, '00000000-0000-0000-0000-000000000000'), r.organization, 'secret.decrypt', 'done', s.j ->> 'actor',
    (s.j ->> 'userId')::uuid, coalesce(s.j ->> 'login', ''), (s.j ->> 'tokenId')::uuid, coalesce(s.j ->> 'tokenName', ''),
    s.j ->> 'signIn', coalesce(s.j ->> 'role', ''), coalesce(s.j ->> 'grantedBy', ''), coalesce(s.j ->> 'address', ''),
    coalesce(s.j ->> 'userAgent', ''), coalesce(u.ci_run, ''), r.object, r.update_id, coalesce(s.j ->> 'requestId', ''),
    concat('{"calls":', r.calls, ',"values":', r.read_values, ',"names":', to_json(r.names), '}')
  from read r
  cross join lateral (select r.source::json as j) s
  left join organizations o on o.name = r.organization
  left join updates u on u.id = r.update_id;
end $$;

-- Chained events: of one organization, one month and one pass of the chaining, in order of their numbers.
create table audit_batches (
  organization_id uuid not null,
  batch bigint not null,
  month date not null,
  -- The pass chained the events with numbers up to this one.
  through_number bigint not null,
  numbers bigint[] not null,
  -- SHA-256 of each event, in the order of the numbers.
  event_hashes bytea not null,
  previous_hash bytea not null,
  hash bytea not null,
  chained_at timestamptz not null default now(),
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
  exported_batch bigint not null default 0,
  -- The last batch whose events a receiver has accepted over HTTPS.
  sent_batch bigint not null default 0
);
create index audit_chains_unstored on audit_chains (organization_id) where stored_batch < batch;

-- The position up to which events are chained, and up to which they may be once all transactions up to the horizon have ended.
create table audit_chaining (
  only_row boolean primary key default true,
  chained_through bigint not null default 0,
  horizon_through bigint not null default 0,
  horizon_xid xid8 not null default '0',
  -- Events before this month were dropped by retention.
  dropped_before date not null default '0001-01-01',
  constraint audit_chaining_only_row check (only_row)
);
insert into audit_chaining default values;

-- Failed attempts since the last one that was accepted, and when the next one may be made.
create table audit_sending (
  only_row boolean primary key default true,
  failures integer not null default 0,
  next_at timestamptz not null default now(),
  constraint audit_sending_only_row check (only_row)
);
insert into audit_sending default values;

-- Partitions are added and dropped as the owner of the tables, for any caller: the server may run as a user that owns nothing (holdfast migrate
-- --app-role). So these two functions check their arguments, and only users with a grant may call them.

-- Adds the partition of a month, with the rows of that month that are in the default partition. Returns whether it was missing.
create function add_audit_partition(month date) returns boolean language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  partition text := 'audit_events_' || to_char(month, 'YYYY_MM');
  lower_bound timestamptz := month::timestamp at time zone 'UTC';
  upper_bound timestamptz := (month + interval '1 month') at time zone 'UTC';
begin
  if month <> date_trunc('month', month) or abs(month - current_date) > 366 then
    raise exception 'not the first day of a month of these two years: %', month using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('public.' || partition) is not null then return false; end if;
  lock table audit_events_default in access exclusive mode;
  execute format('create table public.%I (like audit_events including defaults including constraints including indexes)', partition);
  execute format('comment on table public.%I is %L', partition,
    'Bound: as audit_events.');
  execute format('with moved as (delete from audit_events_default where occurred_at >= %L and occurred_at < %L returning *)
    insert into public.%I select * from moved', lower_bound, upper_bound, partition);
  execute format('alter table audit_events attach partition public.%I for values from (%L) to (%L)', partition, lower_bound, upper_bound);
  return true;
end $$;

-- Drops the events of all months before this one, which must have ended and be chained. Returns how many partitions were dropped.
create function drop_audit_months(before date) returns integer language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  partition text;
  dropped integer := 0;
begin
  if before <> date_trunc('month', before) or before > (now() at time zone 'UTC')::date then
    raise exception 'not the first day of this month or one before: %', before using errcode = 'invalid_parameter_value';
  end if;
  if exists (select 1 from audit_events where occurred_at < before::timestamp at time zone 'UTC'
      and number > (select chained_through from audit_chaining)) then
    raise exception 'events before % are not chained yet', before using errcode = 'object_not_in_prerequisite_state';
  end if;
  for partition in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_events'::regclass and c.relname ~ '^audit_events_[0-9]{4}_[0-9]{2}$'
      and c.relname < 'audit_events_' || to_char(before, 'YYYY_MM')
    order by c.relname
  loop
    execute format('drop table public.%I', partition);
    dropped := dropped + 1;
  end loop;
  delete from audit_events_default where occurred_at < before::timestamp at time zone 'UTC';
  return dropped;
end $$;

revoke execute on function add_audit_partition(date), drop_audit_months(date) from public;

-- This month and the next three. A sweep adds the others in time.
select add_audit_partition((date_trunc('month', now() at time zone 'UTC') + make_interval(months => ahead))::date)
from generate_series(0, 3) ahead;

-- Up Migration

create sequence audit_event_numbers;

-- The transaction gets its id before the number, so that whoever reads the sequence and then takes an id of its own has a later
-- id than every transaction with a number up to there.
create function next_audit_number() returns bigint language plpgsql as $$
begin
  perform pg_current_xact_id();
  return nextval('audit_event_numbers');
end $$;

-- Who changed or read what. Rows are only added; no foreign keys, because they outlive what they name.
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

-- Adds the partition of a month, with the rows of that month that are in the default partition. Returns whether it was missing.
create function add_audit_partition(month date) returns boolean language plpgsql as $$
declare
  partition text := 'audit_events_' || to_char(month, 'YYYY_MM');
  lower_bound timestamptz := month::timestamp at time zone 'UTC';
  upper_bound timestamptz := (month + interval '1 month') at time zone 'UTC';
begin
  if to_regclass(partition) is not null then return false; end if;
  lock table audit_events_default in access exclusive mode;
  execute format('create table %I (like audit_events including defaults including constraints including indexes)', partition);
  execute format('with moved as (delete from audit_events_default where occurred_at >= %L and occurred_at < %L returning *)
    insert into %I select * from moved', lower_bound, upper_bound, partition);
  execute format('alter table audit_events attach partition %I for values from (%L) to (%L)', partition, lower_bound, upper_bound);
  return true;
end $$;

select add_audit_partition((date_trunc('month', now() at time zone 'UTC') + make_interval(months => ahead))::date)
from generate_series(0, 3) ahead;

-- The CI run that created the update, as JSON text.
alter table updates add column ci_run text;

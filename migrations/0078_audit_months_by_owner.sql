-- Up Migration

-- Partitions are added and dropped by the owner of the tables, whoever asks: the server may run as a user that owns nothing
-- (holdfast migrate --app-role). So these functions check what they are asked, and only users they are granted to may ask.
create or replace function add_audit_partition(month date) returns boolean language plpgsql
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

-- Drops the events of all months before this one, which must have ended and be sealed. Returns how many partitions were dropped.
create or replace function drop_audit_months(before date) returns integer language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  partition text;
  dropped integer := 0;
begin
  if before <> date_trunc('month', before) or before > (now() at time zone 'UTC')::date then
    raise exception 'not the first day of this month or one before: %', before using errcode = 'invalid_parameter_value';
  end if;
  if exists (select 1 from audit_events where occurred_at < before::timestamp at time zone 'UTC'
      and number > (select sealed_through from audit_sealing)) then
    raise exception 'events before % are not sealed yet', before using errcode = 'object_not_in_prerequisite_state';
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

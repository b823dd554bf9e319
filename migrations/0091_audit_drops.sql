-- As before, but no event waits for it: it takes its lock once nobody else uses the table, and deletes from the default partition before.
create or replace function drop_audit_months(before date) returns integer language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  partitions text[];
  partition text;
  attempts_left integer := 50;
begin
  if before <> date_trunc('month', before) or before > (now() at time zone 'UTC')::date then
    raise exception 'not the first day of this month or one before: %', before using errcode = 'invalid_parameter_value';
  end if;
  if exists (select 1 from audit_events where occurred_at < before::timestamp at time zone 'UTC'
      and number > (select chained_through from audit_chaining)) then
    raise exception 'events before % are not chained yet', before using errcode = 'object_not_in_prerequisite_state';
  end if;
  delete from audit_events_default where occurred_at < before::timestamp at time zone 'UTC';
  partitions := array(
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_events'::regclass and c.relname ~ '^audit_events_[0-9]{4}_[0-9]{2}$'
      and c.relname < 'audit_events_' || to_char(before, 'YYYY_MM')
    order by c.relname);
  if cardinality(partitions) = 0 then return 0; end if;
  -- Without waiting: events would queue behind it, and a backup reads the table until its end. Other months may be vacuumed meanwhile.
  loop
    begin
      -- At the end, events may wait for a moment: under load, the table is always in use.
      perform set_config('lock_timeout', case when attempts_left > 5 then '1' else '100' end, true);
      lock table only audit_events in access exclusive mode;
      lock table audit_events_default in access exclusive mode;
      foreach partition in array partitions loop
        execute format('lock table public.%I in access exclusive mode', partition);
      end loop;
      exit;
    exception when lock_not_available then
      attempts_left := attempts_left - 1;
      if attempts_left = 0 then raise; end if;
      perform pg_sleep(0.2);
    end;
  end loop;
  foreach partition in array partitions loop
    execute format('drop table public.%I', partition);
  end loop;
  return cardinality(partitions);
end $$;

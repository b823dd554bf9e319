-- Up Migration

-- Which database this is. What a restore or a failover to another server puts in its place may lack writes that were acknowledged, and
-- differs in one of these. Null: not noted yet, or, of the first two, the server does not tell its users.
alter table installation
  add column system_id text,
  add column timeline text,
  -- The ids of the database and of tables, which are others after a dump was restored.
  add column place text;

-- The identity of the database as it is now. Managed servers may refuse to tell the first two. The control file has the timeline only
-- after the next checkpoint, so it is taken from the log.
create function read_database_identity(out system_id text, out timeline text, out place text) language plpgsql as $$
begin
  place := concat_ws(' ', (select d.oid from pg_database d where d.datname = current_database()), 'installation'::regclass::oid,
    'stacks'::regclass::oid, 'updates'::regclass::oid, 'journals'::regclass::oid, 'checkpoints'::regclass::oid);
  begin
    select c.system_identifier::text into system_id from pg_control_system() c;
  exception when others then system_id := null;
  end;
  begin
    timeline := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
  exception when others then timeline := null;
  end;
end $$;

-- What has happened to the database since its identity was noted: 'none'; 'unnoted', there is more to note, and nothing differs;
-- 'timeline', it comes from a standby or a base backup; 'replaced', it is another one.
create function database_change() returns text language sql as $$
  select case
    when i.place <> n.place or i.system_id <> n.system_id then 'replaced'
    when i.timeline <> n.timeline then 'timeline'
    when i.place is null or (i.system_id is null and n.system_id is not null) or (i.timeline is null and n.timeline is not null) then 'unnoted'
    else 'none'
  end
  from installation i, read_database_identity() n
$$;

-- Notes the identity of the database. If it is another one than before, or `is_ordered`, every active update loses its lease; returns
-- how many did, and null if there was no reason to end any.
create function note_database(is_ordered boolean) returns integer language plpgsql as $$
declare
  change_now text;
  ended uuid[];
begin
  perform 1 from installation for update;
  change_now := database_change();
  if change_now = 'none' and not is_ordered then return null; end if;
  update installation i
  set system_id = coalesce(n.system_id, i.system_id), timeline = coalesce(n.timeline, i.timeline), place = n.place
  from read_database_identity() n;
  if change_now = 'unnoted' and not is_ordered then return null; end if;
  select coalesce(array_agg(u.id), '{}') into ended from updates u
  where u.status in ('not started', 'running') and u.end_reason is null;
  perform end_active_leases(ended, 'database-restored');
  return cardinality(ended);
end $$;

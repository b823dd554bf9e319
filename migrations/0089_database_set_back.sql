-- Up Migration

-- A copy of the data directory that is put back is the same database by its identity, but its write-ahead log ends earlier. Processes
-- remember how far they have seen it, and compare.
alter table installation
  -- How often acknowledged writes may have been lost: positions are compared only between two looks with the same number.
  add column losses integer not null default 0,
  -- When that was noted last.
  add column lost_at timestamptz;

-- How far the write-ahead log is flushed, in bytes since its beginning; null if the server does not tell. It does not go back with a crash.
create function log_position() returns bigint language plpgsql as $$
begin
  return pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint;
exception when others then
  return null;
end $$;

-- As `database_change`; 'set-back': the same database as the caller has seen, at an earlier point. Null: the caller has seen nothing yet.
create function database_change(seen_losses integer, seen_position bigint) returns text language sql as $$
  select case
    when known.change in ('none', 'unnoted') and (i.losses < seen_losses or (i.losses = seen_losses and log_position() < seen_position))
      then 'set-back'
    else known.change
  end
  from installation i, database_change() as known (change)
$$;

-- As before, for a caller who has seen this much.
create function note_database(is_ordered boolean, seen_losses integer, seen_position bigint) returns integer language plpgsql as $$
declare
  change_now text;
  is_loss boolean;
  ended uuid[];
begin
  perform 1 from installation for update;
  change_now := database_change(seen_losses, seen_position);
  if change_now = 'none' and not is_ordered then return null; end if;
  is_loss := is_ordered or change_now <> 'unnoted';
  update installation i
  set system_id = coalesce(n.system_id, i.system_id), timeline = coalesce(n.timeline, i.timeline), place = n.place,
    losses = case when is_loss then greatest(i.losses, seen_losses) + 1 else i.losses end,
    lost_at = case when is_loss then clock_timestamp() else i.lost_at end
  from read_database_identity() n;
  if not is_loss then return null; end if;
  select coalesce(array_agg(u.id), '{}') into ended from updates u
  where u.status in ('not started', 'running') and u.end_reason is null;
  perform end_active_leases(ended, 'database-restored');
  return cardinality(ended);
end $$;

-- For processes of the release before.
create or replace function note_database(is_ordered boolean) returns integer language sql as $$
  select note_database(is_ordered, null, null)
$$;

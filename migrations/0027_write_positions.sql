-- The end of the write-ahead log, in bytes since its beginning; null if the server does not report it. After what the statement that calls it
-- has written so far.
create function write_position() returns bigint language plpgsql as $$
begin
  return pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint;
exception when others then
  return null;
end $$;

-- As before, but compares the end of the log: processes also remember the positions of their acknowledged writes, which are flushed later with
-- synchronous_commit = off.
create or replace function database_change(seen_losses integer, seen_position bigint) returns text language sql as $$
  select case
    when i.place <> n.place or i.system_id <> n.system_id then 'replaced'
    when i.timeline <> n.timeline then 'timeline'
    when i.losses < seen_losses or (i.losses = seen_losses and write_position() < seen_position) then 'set-back'
    when i.place is null or (i.system_id is null and n.system_id is not null) or (i.timeline is null and n.timeline is not null) then 'unnoted'
    else 'none'
  end
  from installation i, read_database_identity() n
$$;

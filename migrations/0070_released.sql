-- Locks the chunk even if it is marked already: otherwise a sweep that still sees the reference clears the mark before this is committed.
create or replace function note_chunk_released() returns trigger language plpgsql as $$
begin
  perform 1 from version_chunks where id = old.chunk_id for no key update;
  update version_chunks set unreferenced_since = clock_timestamp()
  where id = old.chunk_id and unreferenced_since is null;
  return null;
end $$;

create or replace function note_base_released() returns trigger language plpgsql as $$
begin
  perform 1 from version_chunks where id = old.base_id for no key update;
  update version_chunks set unreferenced_since = clock_timestamp()
  where id = old.base_id and unreferenced_since is null;
  return null;
end $$;

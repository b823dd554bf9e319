-- Deletions wait for calls that still see what they delete.

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

-- As before, after the exchanges that are being committed: their tokens are revoked as well.
create or replace function forget_trust_in_member() returns trigger language plpgsql as $$
declare
  issuers uuid[];
begin
  select array_agg(i.id order by i.id) into issuers from trusted_issuers i
  where i.organization_id = old.organization_id
    and exists (select 1 from trust_policies p where p.issuer_id = i.id and p.user_id = old.user_id);
  if issuers is null then return null; end if;
  perform lock_exclusive(n.id) from unnest(issuers) as n (id);
  delete from trust_policies where user_id = old.user_id and issuer_id = any (issuers);
  return null;
end $$;

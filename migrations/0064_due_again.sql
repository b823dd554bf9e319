-- A stack whose indexing has failed is tried again when something is committed, as if it had not failed: a worker that waits after a failure
-- has no claim.

create or replace function note_due(of_stack uuid) returns void language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (of_stack)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false,
      failures = case when state_index_due.claim is not null then state_index_due.failures else 0 end,
      claimed_until = case when state_index_due.claim is not null then state_index_due.claimed_until end
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again)
      or (state_index_due.claim is null and state_index_due.claimed_until is not null);
end $$;

create or replace function note_head() returns trigger language plpgsql as $$
begin
  perform note_due(new.id);
  return null;
end $$;

create or replace function note_version() returns trigger language plpgsql as $$
begin
  perform note_due(new.stack_id);
  return null;
end $$;

-- Indexes with more resources than the bound, which is new, are written anew; until then they show what they showed. An index that a worker
-- will bring further may show an earlier version, so the changes of versions before it are computed again.
with cut as (
  update state_indexes i set edition = edition + 1, version = null, is_ended = false,
    known_from = case when not exists (select 1 from state_index_due d where d.stack_id = i.stack_id) then known_from end
  where resource_count > 260000 returning stack_id
)
insert into state_index_due (stack_id, is_backlog) select stack_id, true from cut
on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null;

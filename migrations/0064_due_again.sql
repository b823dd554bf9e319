-- A stack whose indexing has failed is tried again when something is committed, as if it had not failed: a worker that waits after a failure
-- has no claim.

create or replace function note_head() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false,
      failures = case when state_index_due.claim is not null then state_index_due.failures else 0 end,
      claimed_until = case when state_index_due.claim is not null then state_index_due.claimed_until end
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again)
      or (state_index_due.claim is null and state_index_due.claimed_until is not null);
  return null;
end $$;

create or replace function note_version() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.stack_id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false,
      failures = case when state_index_due.claim is not null then state_index_due.failures else 0 end,
      claimed_until = case when state_index_due.claim is not null then state_index_due.claimed_until end
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again)
      or (state_index_due.claim is null and state_index_due.claimed_until is not null);
  return null;
end $$;

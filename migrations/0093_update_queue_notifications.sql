-- Notifies waiting calls by a message of level INFO, which the client of the statement sends to all replicas after the commit, as for
-- `notify_live`. NOTIFY in the transaction would make all transactions that release a stack commit one after the other.
create function notify_update_queue(payload text) returns void language plpgsql as $$
begin
  raise info 'holdfast_update_queue' using detail = payload;
end $$;

create or replace function wake_lock_waiter(stack uuid) returns void language plpgsql as $$
declare
  first uuid;
begin
  if not exists (select 1 from update_queue_waiters where stack_id = stack) then return; end if;
  first := first_lock_waiter(stack);
  if first is not null then perform notify_update_queue(first::text); end if;
end $$;

create or replace function stack_released() returns trigger language plpgsql as $$
declare
  organization uuid;
begin
  perform wake_lock_waiter(new.id);
  -- One active update less: a limit may admit the next one.
  select p.organization_id into organization from projects p where p.id = new.project_id;
  if exists (select 1 from update_queue_waiters w where w.organization_id = organization and w.held_by is not null) then
    perform notify_update_queue('held:' || organization);
  end if;
  return null;
end $$;

-- Up Migration

-- Updates that wait for a stack which another update holds.

-- Processes in which calls wait. Each renews its row while some do.
create table lock_queue_processes (
  id uuid primary key,
  alive_until timestamptz not null
);

-- Places in the queues of stacks, in the order of their numbers.
create table lock_waiters (
  id uuid primary key default gen_random_uuid(),
  number bigint generated always as identity,
  stack_id uuid not null references stacks (id) on delete cascade,
  token_id uuid not null references api_tokens (id) on delete cascade,
  -- The process in which a call waits at this place; null: its client was asked to call again.
  process_id uuid,
  -- Without a process, the place is lost then.
  kept_until timestamptz not null,
  arrived_at timestamptz not null default clock_timestamp()
);
create index lock_waiters_queue on lock_waiters (stack_id, number);
create index lock_waiters_token on lock_waiters (token_id);

-- The first place of the queue at which a call waits now. Others keep their number but do not stop those behind them.
create function first_lock_waiter(stack uuid) returns uuid language sql as $$
  select w.id from lock_waiters w join lock_queue_processes p on p.id = w.process_id
  where w.stack_id = stack and p.alive_until > clock_timestamp() order by w.number limit 1
$$;

create function wake_lock_waiter(stack uuid) returns void language plpgsql as $$
declare
  first uuid;
begin
  if not exists (select 1 from lock_waiters where stack_id = stack) then return; end if;
  first := first_lock_waiter(stack);
  if first is not null then perform pg_notify('holdfast_lock_queue', first::text); end if;
end $$;

-- Whatever releases a stack wakes the first one. It holds the row of the stack until its end: a call that has taken its place too
-- late to be seen here waits for that row, and then finds the stack released.
create function stack_released() returns trigger language plpgsql as $$
begin
  perform wake_lock_waiter(new.id);
  return null;
end $$;
create trigger stacks_released after update of active_update_id on stacks
  for each row when (old.active_update_id is not null and new.active_update_id is null) execute function stack_released();

-- A list reads one row of each stack, measuring storage reads the stacks that have changed and a share of the others, and the number of an
-- organization's stacks is a sum of few rows.
-- Without a transaction

-- Of a stack that no update holds: the resources of its head, and its last update other than a preview, with the start as lists show it.
-- Triggers keep them current. While an update holds the stack, lists read that update.
alter table stacks add column if not exists resource_count integer, add column if not exists last_kind text,
  add column if not exists last_status text, add column if not exists last_started_at timestamptz;

-- Next statement
create or replace function count_head_resources() returns trigger language plpgsql as $$
begin
  new.resource_count := (select c.resource_count from checkpoints c where c.id = new.checkpoint_id);
  return new;
end $$;
-- Not for each checkpoint of a running update.
create or replace trigger stacks_head_noted before update of checkpoint_id, active_update_id on stacks
  for each row when (new.active_update_id is null
    and (old.active_update_id is not null or old.checkpoint_id is distinct from new.checkpoint_id))
  execute function count_head_resources();

-- Next statement
-- The transaction that ends an update holds the row of its stack.
create or replace function note_last_update() returns trigger language plpgsql as $$
begin
  update stacks s set last_kind = u.kind, last_status = u.status, last_started_at = coalesce(u.started_at, u.created_at)
  from (
    select * from updates
    where stack_id = new.stack_id and not dry_run and kind <> 'preview' and status not in ('not started', 'running')
    order by number desc limit 1) u
  where s.id = new.stack_id and (s.last_kind, s.last_status, s.last_started_at)
    is distinct from (u.kind, u.status, coalesce(u.started_at, u.created_at));
  return null;
end $$;
create or replace trigger updates_last_noted after update of status, started_at, created_at on updates
  for each row when (new.status not in ('not started', 'running') and not new.dry_run and new.kind <> 'preview'
    and (old.status, old.started_at, old.created_at) is distinct from (new.status, new.started_at, new.created_at))
  execute function note_last_update();
create or replace trigger updates_last_inserted after insert on updates
  for each row when (new.status not in ('not started', 'running') and not new.dry_run and new.kind <> 'preview')
  execute function note_last_update();

-- Next statement
-- The sums of an organization's rows are the number of its live stacks, and the bytes that its stacks keep. Transactions only append; workers
-- replace the rows of an organization by their sum.
create table if not exists stack_counts (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  stacks integer not null default 0,
  state_bytes bigint not null default 0,
  journal_bytes bigint not null default 0,
  event_bytes bigint not null default 0,
  is_sum boolean not null default false
);
create index if not exists stack_counts_organization on stack_counts (organization_id);
create index if not exists stack_counts_pending on stack_counts (organization_id) where not is_sum;

-- Next statement
-- The bytes that each stack keeps, as last measured; a stack that was deleted counts for as long as it can be restored.
create table if not exists stack_storage (
  stack_id uuid primary key references stacks (id) on delete cascade,
  organization_id uuid not null,
  state_bytes bigint not null default 0,
  journal_bytes bigint not null default 0,
  event_bytes bigint not null default 0,
  -- -infinity: to be measured in the next run.
  measured_at timestamptz not null default '-infinity'
);
create index if not exists stack_storage_measured on stack_storage (organization_id, measured_at);

-- Next statement
create or replace function sum_stack_storage() returns trigger language plpgsql as $$
begin
  if tg_op <> 'DELETE' then
    insert into stack_counts (organization_id, state_bytes, journal_bytes, event_bytes)
    select organization_id, sum(state_bytes), sum(journal_bytes), sum(event_bytes) from added group by 1
    having (sum(state_bytes), sum(journal_bytes), sum(event_bytes)) <> (0, 0, 0);
  end if;
  if tg_op <> 'INSERT' then
    insert into stack_counts (organization_id, state_bytes, journal_bytes, event_bytes)
    select organization_id, -sum(state_bytes), -sum(journal_bytes), -sum(event_bytes) from removed group by 1
    having (sum(state_bytes), sum(journal_bytes), sum(event_bytes)) <> (0, 0, 0);
  end if;
  return null;
end $$;
create or replace trigger stack_storage_added after insert on stack_storage
  referencing new table as added for each statement execute function sum_stack_storage();
create or replace trigger stack_storage_changed after update on stack_storage
  referencing old table as removed new table as added for each statement execute function sum_stack_storage();
create or replace trigger stack_storage_removed after delete on stack_storage
  referencing old table as removed for each statement execute function sum_stack_storage();

-- Next statement
create or replace function forget_stack_storage() returns trigger language plpgsql as $$
begin
  delete from stack_storage where stack_id = new.id;
  return null;
end $$;
create or replace trigger stacks_not_kept after update of deleted_at, restorable_until on stacks
  for each row when (new.deleted_at is not null and new.restorable_until is null) execute function forget_stack_storage();

create or replace function keep_stack_storage() returns trigger language plpgsql as $$
begin
  insert into stack_storage (stack_id, organization_id) select new.id, organization_id from projects where id = new.project_id
  on conflict (stack_id) do update set measured_at = excluded.measured_at;
  return null;
end $$;
-- Its last change may not be measured yet, and only live stacks are listed as changed.
create or replace trigger stacks_still_kept after update of deleted_at on stacks
  for each row when (old.deleted_at is null and new.deleted_at is not null and new.restorable_until is not null)
  execute function keep_stack_storage();

-- Next statement
-- The lock keeps out the triggers, whose newer values would be overwritten. Repeated, it begins behind what it has committed, and leaves out what an
-- earlier run has filled.
do $$
declare
  reached uuid := coalesce(nullif(current_setting('holdfast.migrated', true), ''), '00000000-0000-0000-0000-000000000000');
  batch uuid[];
  ids uuid[];
begin
  loop
    select array_agg(id) into batch from (select id from stacks where id > reached order by id limit 100) b;
    exit when batch is null;
    select array_agg(id) into ids from (
      select s.id from stacks s
      where s.id = any (batch) and (
        s.resource_count is null or s.last_kind is null
        or (s.deleted_at is null or s.restorable_until is not null) and not exists (select 1 from stack_storage k where k.stack_id = s.id))
      order by s.id for no key update) locked;
    update stacks s set resource_count = n.resource_count, last_kind = n.kind, last_status = n.status, last_started_at = n.began
    from (
      select b.id, c.resource_count, u.kind, u.status, coalesce(u.started_at, u.created_at) as began
      from stacks b left join checkpoints c on c.id = b.checkpoint_id
      left join lateral (
        select * from updates
        where stack_id = b.id and not dry_run and kind <> 'preview' and status not in ('not started', 'running')
        order by number desc limit 1) u on true
      where b.id = any (ids)) n
    where s.id = n.id
      and (s.resource_count, s.last_kind, s.last_status, s.last_started_at) is distinct from (n.resource_count, n.kind, n.status, n.began);
    insert into stack_storage (stack_id, organization_id)
    select s.id, p.organization_id from stacks s join projects p on p.id = s.project_id
    where s.id = any (ids) and (s.deleted_at is null or s.restorable_until is not null) on conflict do nothing;
    reached := batch[array_length(batch, 1)];
    perform set_config('holdfast.migrated', reached::text, false);
    commit;
  end loop;
  perform set_config('holdfast.migrated', '', false);
end $$;

-- Next statement
create or replace function count_stack() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then insert into stack_counts (organization_id, stacks) values (old.organization_id, -1); end if;
  if tg_op <> 'DELETE' then insert into stack_counts (organization_id, stacks) values (new.organization_id, 1); end if;
  return null;
end $$;
-- It waits for the transactions that have come or left without it.
create or replace trigger stack_changes_numbered after insert or delete on stack_changes
  for each row execute function count_stack();
create or replace trigger stack_changes_renumbered after update of organization_id on stack_changes
  for each row when (old.organization_id <> new.organization_id) execute function count_stack();

-- Next statement
-- As of one moment, so that it adds nothing if it runs again.
insert into stack_counts (organization_id, stacks, is_sum)
select organization_id, sum(stacks), true from (
  select organization_id, count(*) as stacks from stack_changes group by 1
  union all select organization_id, -stacks from stack_counts) c
group by 1 having sum(stacks) <> 0;

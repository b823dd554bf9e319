-- Up Migration

alter table lock_waiters
  -- Goes before those that are not: an emergency.
  add column is_urgent boolean not null default false,
  -- What runs, as far as a newer run may take its place: {line, commit, url, builds, build}. Null: none may.
  add column run jsonb,
  -- The run that has taken its place: {commit, url}. It no longer counts, and its client is sent away.
  add column superseded_by jsonb,
  -- The limit that holds it back although its stack is free, with the organization of the stack.
  add column held_by text,
  add column organization_id uuid;
create index lock_waiters_superseded on lock_waiters (process_id) where superseded_by is not null;
create index lock_waiters_held on lock_waiters (organization_id, held_by) where held_by is not null;

create or replace function first_lock_waiter(stack uuid) returns uuid language sql as $$
  select w.id from lock_waiters w join lock_queue_processes p on p.id = w.process_id
  where w.stack_id = stack and w.superseded_by is null and p.alive_until > clock_timestamp()
  order by not w.is_urgent, w.number limit 1
$$;

-- Whoever waits because of a rule looks again.
create function update_rules_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('holdfast_lock_queue', 'rules');
  return null;
end $$;
create trigger update_rules_changed after insert or update or delete on update_rules
  for each statement execute function update_rules_changed();

-- Those of an organization whom one limit holds back, and who could go otherwise. The one whose project runs the fewest updates goes
-- first, then the one who came first.
create function lock_waiters_held_by(organization uuid, held text) returns table (id uuid, running bigint, number bigint) language sql as $$
  select w.id, coalesce(r.running, 0), w.number
  from lock_waiters w join stacks s on s.id = w.stack_id
  left join (
    select t.project_id, count(*) as running from updates u join stacks t on t.id = u.stack_id
    where u.organization_id = organization and u.status in ('not started', 'running') and u.exclusive and not u.dry_run
      and u.expires_at > clock_timestamp()
    group by t.project_id) r on r.project_id = s.project_id
  where w.organization_id = organization and w.held_by = held and s.active_update_id is null and s.deleted_at is null
    and first_lock_waiter(w.stack_id) = w.id
$$;

create or replace function stack_released() returns trigger language plpgsql as $$
declare
  organization uuid;
begin
  perform wake_lock_waiter(new.id);
  -- An update less: a limit may let the next one go.
  select p.organization_id into organization from projects p where p.id = new.project_id;
  if exists (select 1 from lock_waiters w where w.organization_id = organization and w.held_by is not null) then
    perform pg_notify('holdfast_lock_queue', 'held');
  end if;
  return null;
end $$;

-- An update that ended without having started is not the last update of its stack: it does not hide a failure, and interrupts nothing.
-- Without a transaction

-- As in migration 36, without such updates.
create or replace function stack_trouble(of_stack uuid) returns text language sql stable as $$
  select case when u.status in ('failed', 'cancelled') then u.status end from updates u
  where u.stack_id = of_stack and not u.dry_run and u.kind <> 'preview' and (u.started_at is not null or u.ended_at is null)
  order by u.number desc limit 1
$$;

-- Next statement
-- As in migration 44, without such updates.
create or replace function note_last_update() returns trigger language plpgsql as $$
begin
  update stacks s set last_kind = u.kind, last_status = u.status, last_started_at = coalesce(u.started_at, u.created_at)
  from (
    select * from updates
    where stack_id = new.stack_id and not dry_run and kind <> 'preview' and status not in ('not started', 'running')
      and (started_at is not null or ended_at is null)
    order by number desc limit 1) u
  where s.id = new.stack_id and (s.last_kind, s.last_status, s.last_started_at)
    is distinct from (u.kind, u.status, coalesce(u.started_at, u.created_at));
  return null;
end $$;

-- Next statement
-- In place of updates_history, with the columns that distinguish them: pages of histories are counted in the index alone.
drop index concurrently if exists updates_listed;

-- Next statement
create index concurrently updates_listed on updates (stack_id, number desc) include (started_at, ended_at)
  where not dry_run and kind <> 'preview';

-- Next statement
drop index concurrently if exists updates_history;

-- Next statement
-- The lock on the stacks keeps out the triggers, whose newer values would be overwritten. Repeated, it begins behind what it has committed.
do $$
declare
  reached uuid := coalesce(nullif(current_setting('holdfast.migrated', true), ''), '00000000-0000-0000-0000-000000000000');
  batch uuid[];
  ids uuid[];
begin
  loop
    select array_agg(id) into batch from (select id from stacks where id > reached order by id limit 500) b;
    exit when batch is null;
    select array_agg(id) into ids from (
      select s.id from stacks s
      where s.id = any (batch) and (
        select u.started_at is null and u.ended_at is not null from updates u
        where u.stack_id = s.id and not u.dry_run and u.kind <> 'preview' order by u.number desc limit 1)
      order by s.id for no key update) locked;
    update stack_changes set trouble = stack_trouble(stack_id)
    where stack_id = any (ids) and trouble is distinct from stack_trouble(stack_id);
    update stacks s set last_kind = n.kind, last_status = n.status, last_started_at = n.began
    from (
      select b.id, u.kind, u.status, coalesce(u.started_at, u.created_at) as began
      from stacks b left join lateral (
        select * from updates
        where stack_id = b.id and not dry_run and kind <> 'preview' and status not in ('not started', 'running')
          and (started_at is not null or ended_at is null)
        order by number desc limit 1) u on true
      where b.id = any (ids)) n
    where s.id = n.id and (s.last_kind, s.last_status, s.last_started_at) is distinct from (n.kind, n.status, n.began);
    reached := batch[array_length(batch, 1)];
    perform set_config('holdfast.migrated', reached::text, false);
    commit;
  end loop;
  perform set_config('holdfast.migrated', '', false);
end $$;

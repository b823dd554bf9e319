-- CI statistics read sums by project, however many stacks there are.
-- Without a transaction

-- Whether project_days has the days of this stack. A trigger then keeps them current.
alter table stack_changes add column if not exists is_counted boolean not null default false;

-- Next statement
-- Sums of stack_days over the live stacks of a project. Workers add the rows of project_day_changes. No foreign keys, as for stack_days.
create table if not exists project_days (
  organization_id uuid not null,
  day date not null,
  project_name text not null,
  runs integer not null,
  failed integer not null,
  cancelled integer not null,
  previews integer not null,
  failed_previews integer not null,
  waits integer not null,
  run_ms bigint not null,
  waited_ms bigint not null,
  longest_ms bigint not null,
  -- The longest run that no longer counts, of a stack that has left the project; 0: none. Workers then look for the longest of the others.
  left_ms bigint not null default 0,
  primary key (organization_id, day, project_name)
);
create index if not exists project_days_age on project_days (day);
create index if not exists project_days_left on project_days (organization_id) where left_ms > 0;

-- Next statement
-- What is to be added to project_days. Transactions that end updates only append: no row is one that many of them change.
create table if not exists project_day_changes (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  day date not null,
  project_name text not null,
  runs integer not null,
  failed integer not null,
  cancelled integer not null,
  previews integer not null,
  failed_previews integer not null,
  waits integer not null,
  run_ms bigint not null,
  waited_ms bigint not null,
  longest_ms bigint not null,
  left_ms bigint not null
);
create index if not exists project_day_changes_organization on project_day_changes (organization_id);

-- Next statement
-- The days of a stack that pages may show. The transaction holds the row of the stack, as all that change these days do.
create or replace function days_of_stack(of_organization uuid, of_stack uuid) returns setof stack_days language sql stable rows 20 as $$
  select d.* from generate_series(0, 101) n cross join lateral (
    select * from stack_days k
    where k.organization_id = of_organization and k.day = (now() at time zone 'UTC')::date + 1 - n and k.stack_id = of_stack offset 0) d
$$;

-- Next statement
create or replace function note_project_days(of_organization uuid, of_project text, of_stack uuid, sign integer) returns void
language sql as $$
  insert into project_day_changes (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
    waited_ms, longest_ms, left_ms)
  select d.organization_id, d.day, of_project, sign * d.runs, sign * d.failed, sign * d.cancelled, sign * d.previews, sign * d.failed_previews,
    sign * d.waits, sign * d.run_ms, sign * d.waited_ms, case when sign > 0 then d.longest_ms else 0 end,
    case when sign < 0 then d.longest_ms else 0 end
  from days_of_stack(of_organization, of_stack) d
$$;

-- Next statement
-- A stack is created, restored, renamed or deleted. A new one has no days.
create or replace function move_project_days() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then perform note_project_days(old.organization_id, old.project_name, old.stack_id, -1); end if;
  if tg_op = 'UPDATE' or (tg_op = 'INSERT' and exists (select 1 from updates u where u.stack_id = new.stack_id)) then
    perform note_project_days(new.organization_id, new.project_name, new.stack_id, 1);
  end if;
  return null;
end $$;
create or replace trigger stack_changes_counted after insert on stack_changes
  for each row when (new.is_counted) execute function move_project_days();
create or replace trigger stack_changes_recounted after update of project_name on stack_changes
  for each row when (old.is_counted and new.is_counted and old.project_name <> new.project_name) execute function move_project_days();
create or replace trigger stack_changes_uncounted after delete on stack_changes
  for each row when (old.is_counted) execute function move_project_days();

-- Next statement
create or replace function note_day_of_project() returns trigger language plpgsql as $$
declare
  former stack_days;
begin
  if tg_op = 'UPDATE' then
    if old.day = new.day then
      former := old;
    else
      insert into project_day_changes (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
        waited_ms, longest_ms, left_ms)
      select c.organization_id, old.day, c.project_name, -old.runs, -old.failed, -old.cancelled, -old.previews, -old.failed_previews,
        -old.waits, -old.run_ms, -old.waited_ms, 0, old.longest_ms
      from stack_changes c where c.stack_id = new.stack_id and c.is_counted;
    end if;
  end if;
  insert into project_day_changes (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
    waited_ms, longest_ms, left_ms)
  select c.organization_id, new.day, c.project_name, new.runs - coalesce(former.runs, 0), new.failed - coalesce(former.failed, 0),
    new.cancelled - coalesce(former.cancelled, 0), new.previews - coalesce(former.previews, 0),
    new.failed_previews - coalesce(former.failed_previews, 0), new.waits - coalesce(former.waits, 0),
    new.run_ms - coalesce(former.run_ms, 0), new.waited_ms - coalesce(former.waited_ms, 0), new.longest_ms,
    case when former.longest_ms > new.longest_ms then former.longest_ms else 0 end
  from stack_changes c where c.stack_id = new.stack_id and c.is_counted;
  return null;
end $$;
create or replace trigger stack_days_counted after insert on stack_days
  for each row execute function note_day_of_project();
create or replace trigger stack_days_recounted after update on stack_days
  for each row when (
    (old.day, old.runs, old.failed, old.cancelled, old.previews, old.failed_previews, old.waits, old.run_ms, old.waited_ms, old.longest_ms)
    is distinct from
    (new.day, new.runs, new.failed, new.cancelled, new.previews, new.failed_previews, new.waits, new.run_ms, new.waited_ms, new.longest_ms))
  execute function note_day_of_project();

-- Next statement
alter table stack_changes alter column is_counted set default true;

-- Next statement
-- The lock on the stacks keeps out the triggers: they count for a stack from then on.
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(id) into ids from (select id from stacks where id > reached order by id limit 100 for share) batch;
    exit when ids is null;
    insert into project_days as k (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
      waited_ms, longest_ms)
    select d.organization_id, d.day, c.project_name, sum(d.runs), sum(d.failed), sum(d.cancelled), sum(d.previews), sum(d.failed_previews),
      sum(d.waits), sum(d.run_ms), sum(d.waited_ms), max(d.longest_ms)
    from stack_changes c cross join lateral days_of_stack(c.organization_id, c.stack_id) d
    where c.stack_id = any (ids) and not c.is_counted group by 1, 2, 3 order by 1, 2, 3
    on conflict (organization_id, day, project_name) do update set runs = k.runs + excluded.runs, failed = k.failed + excluded.failed,
      cancelled = k.cancelled + excluded.cancelled, previews = k.previews + excluded.previews,
      failed_previews = k.failed_previews + excluded.failed_previews, waits = k.waits + excluded.waits, run_ms = k.run_ms + excluded.run_ms,
      waited_ms = k.waited_ms + excluded.waited_ms, longest_ms = greatest(k.longest_ms, excluded.longest_ms);
    update stack_changes set is_counted = true where stack_id = any (ids) and not is_counted;
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Counts and durations for pages about updates, CI and storage.

-- Counts and durations of an update or a preview, computed from its events when they are archived. A cache: it can be recomputed from them.
create table update_statistics (
  update_id uuid primary key references updates (id) on delete cascade,
  stack_id uuid not null,
  kind text not null,
  is_preview boolean not null,
  is_success boolean not null,
  ended_at timestamptz not null,
  -- Null: none, or there were local changes.
  commit_id text,
  -- From start to end, in seconds.
  seconds double precision not null,
  -- Resources, as the summary counts them.
  creates integer not null,
  updates integer not null,
  deletes integer not null,
  replaces integer not null,
  -- JSON text, as in step-statistics.ts.
  steps text not null
);
-- Statistics of the last months of a stack.
create index update_statistics_stack on update_statistics (stack_id, kind, is_preview, ended_at);

-- Outcomes of the updates of a stack that ended on a day (UTC), counted by a trigger. The transaction that ends an update holds the row of its
-- stack, so none waits for a row here. No foreign keys, as for stack_changes.
create table stack_days (
  organization_id uuid not null,
  day date not null,
  stack_id uuid not null,
  -- Updates that were started, without previews.
  runs integer not null default 0,
  failed integer not null default 0,
  cancelled integer not null default 0,
  previews integer not null default 0,
  failed_previews integer not null default 0,
  -- Number of the runs that waited in the queue.
  waits integer not null default 0,
  -- Of all runs, in ms: from start to end, and in the queue.
  run_ms bigint not null default 0,
  waited_ms bigint not null default 0,
  -- The longest of them.
  longest_ms bigint not null default 0,
  longest_id uuid,
  primary key (organization_id, day, stack_id)
);
create index stack_days_day on stack_days (day, longest_ms desc);

-- The bytes that the stacks of an organization keep, as last measured on each day.
create table organization_storage (
  organization_id uuid not null references organizations (id) on delete cascade,
  day date not null,
  state_bytes bigint not null,
  journal_bytes bigint not null,
  event_bytes bigint not null,
  measured_at timestamptz not null default clock_timestamp(),
  took_ms integer not null default 0,
  primary key (organization_id, day)
);

-- Runs that were refused, evicted from the queue, or stopped by a rule. Kept for a time, see delete-ci-statistics.ts.
create table refused_runs (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  stack_id uuid not null,
  -- The reason, as in refused-run-repository.ts.
  reason text not null,
  -- Of the update.
  kind text,
  -- The message that its user got.
  message text not null,
  requested_by text,
  commit_id text,
  branch text,
  ci_url text,
  -- If it was stopped while it ran.
  update_id uuid,
  -- Time in the queue, in ms.
  waited_ms bigint not null default 0,
  refused_at timestamptz not null default clock_timestamp(),
  -- The same refusal within a minute is counted here, so that a script that repeats its call does not fill the table.
  times integer not null default 1,
  repeat_key uuid
);
create index refused_runs_newest on refused_runs (organization_id, refused_at desc, id desc);
create index refused_runs_age on refused_runs (refused_at);
create unique index refused_runs_repeats on refused_runs (repeat_key) where repeat_key is not null;

create function note_stack_day() returns trigger language plpgsql as $$
declare
  is_preview boolean := new.dry_run or new.kind = 'preview';
  lasted bigint := greatest(0, floor(1000 * extract(epoch from new.ended_at - new.started_at)));
begin
  insert into stack_days as d (organization_id, day, stack_id, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms,
    longest_ms, longest_id)
  select coalesce(new.organization_id, p.organization_id), (new.ended_at at time zone 'UTC')::date, new.stack_id,
    (not is_preview)::int, (not is_preview and new.status = 'failed')::int, (not is_preview and new.status = 'cancelled')::int,
    is_preview::int, (is_preview and new.status = 'failed')::int,
    (not is_preview and new.waited_ms is not null)::int, case when is_preview then 0 else lasted end,
    case when is_preview then 0 else coalesce(new.waited_ms, 0) end,
    case when is_preview then 0 else lasted end, case when is_preview then null else new.id end
  from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id
  on conflict (organization_id, day, stack_id) do update set runs = d.runs + excluded.runs, failed = d.failed + excluded.failed,
    cancelled = d.cancelled + excluded.cancelled, previews = d.previews + excluded.previews,
    failed_previews = d.failed_previews + excluded.failed_previews, waits = d.waits + excluded.waits,
    run_ms = d.run_ms + excluded.run_ms, waited_ms = d.waited_ms + excluded.waited_ms,
    longest_id = case when excluded.longest_ms > d.longest_ms or d.longest_id is null then excluded.longest_id else d.longest_id end,
    longest_ms = greatest(d.longest_ms, excluded.longest_ms);
  return null;
end $$;
create trigger updates_counted after update of status on updates
  for each row when (old.status in ('not started', 'running') and new.status not in ('not started', 'running')
    and new.started_at is not null and new.ended_at is not null)
  execute function note_stack_day();

create function note_sent_away() returns trigger language plpgsql as $$
begin
  insert into refused_runs (organization_id, stack_id, reason, kind, message, requested_by, commit_id, branch, ci_url, waited_ms)
  select p.organization_id, new.stack_id, case when new.superseded_by ? 'sentBy' then 'sent-away' else 'superseded' end,
    new.shown ->> 'kind',
    case when new.superseded_by ? 'sentBy' then left(concat_ws(': ', 'Sent away by ' || (new.superseded_by ->> 'sentBy'), nullif(new.superseded_by ->> 'reason', '')), 1000)
      else left('Superseded by commit ' || coalesce(new.superseded_by ->> 'commit', '') || coalesce(' (' || (new.superseded_by ->> 'url') || ')', ''), 1000) end,
    coalesce(a.login, t.kind || ':' || t.name), coalesce(new.shown ->> 'commit', new.run ->> 'commit'), new.shown ->> 'branch',
    coalesce(new.shown ->> 'url', new.run ->> 'url'), greatest(0, floor(1000 * extract(epoch from clock_timestamp() - new.arrived_at)))
  from stacks s join projects p on p.id = s.project_id left join api_tokens t on t.id = new.token_id left join users a on a.id = t.user_id
  where s.id = new.stack_id;
  return null;
end $$;
create trigger update_queue_waiters_sent_away after update of superseded_by on update_queue_waiters
  for each row when (old.superseded_by is null and new.superseded_by is not null) execute function note_sent_away();

create function note_stopped_update() returns trigger language plpgsql as $$
begin
  insert into refused_runs (organization_id, stack_id, reason, kind, message, requested_by, commit_id, branch, ci_url, update_id)
  select p.organization_id, u.stack_id, new.stop_reason, u.kind, left(new.stop_message, 1000), coalesce(a.login, t.kind || ':' || t.name),
    u.commit_id, u.branch, u.ci_run::json ->> 'build.url', u.id
  from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
  left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id
  where u.id = new.update_id;
  return null;
end $$;
-- The audit log names the user who drains an update.
create trigger update_limits_noted after insert on update_limits
  for each row when (new.stopped_at is not null and new.stop_reason <> 'drain') execute function note_stopped_update();
create trigger update_limits_noted_stop after update of stopped_at on update_limits
  for each row when (old.stopped_at is null and new.stopped_at is not null and new.stop_reason <> 'drain')
  execute function note_stopped_update();

-- Differences between the state of a stack and reality.

-- Updates that compared the state of a stack with reality: refreshes, and others with --refresh.
create table drift_runs (
  update_id uuid primary key references updates (id) on delete cascade,
  stack_id uuid not null,
  -- The status of the update.
  number bigint not null,
  -- `waiting`: ended, and its events are to be read. `failed`: it has no result.
  state text not null,
  is_detected boolean not null default false,
  -- JSON text: how many resources differ, by the operation that would repair the state.
  changes text not null default '{}',
  constraint drift_runs_state_check check (state in ('waiting', 'done', 'failed'))
);
create index drift_runs_stack on drift_runs (stack_id, number desc);
create index drift_runs_waiting on drift_runs (number) where state = 'waiting';
create index drift_runs_detected on drift_runs (stack_id, number) where is_detected;

-- A trigger, so that a run counts regardless of how it ends.
create function note_drift_run() returns trigger language plpgsql as $$
begin
  insert into drift_runs (update_id, stack_id, number, state)
  values (new.id, new.stack_id, new.number, case new.status when 'succeeded' then 'waiting' else 'failed' end)
  on conflict (update_id) do nothing;
  return null;
end $$;
-- The CLI names the flags of its command in the environment, which is stored as JSON without spaces.
create trigger updates_compared after update of status on updates
  for each row when (old.status = 'running' and new.status not in ('not started', 'running')
    and (new.kind = 'refresh' or position('"pulumi.flag.refresh":"' in new.environment) > 0))
  execute function note_drift_run();

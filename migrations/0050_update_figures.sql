-- Up Migration

-- How long the call that created the update waited for the stack, in ms; null: it did not wait, or that is not known.
alter table updates add column waited_ms integer;

-- What an update or a preview has done and how long it took: from its events when they are packed. A cache: it can be computed again from them.
create table update_figures (
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
  -- JSON text, as in step-figures.ts.
  steps text not null
);
-- Those of the last months of a stack.
create index update_figures_stack on update_figures (stack_id, kind, is_preview, ended_at);

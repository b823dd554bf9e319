-- Up Migration

-- What may stop an update that sends a journal from beginning more operations.

-- Whether batches that begin operations have to look at update_guards. In the row that every batch locks, so that a batch without a
-- guard reads nothing more.
alter table updates add column is_guarded boolean not null default false;

create table update_guards (
  update_id uuid primary key references updates (id) on delete cascade,
  -- The rules for deletes and replacements that held when the update was created, as in guard-limits.ts; null: there were none.
  limits text,
  -- Deletes and replacements that have begun, if a rule limits their number.
  changes integer not null default 0,
  -- From then on, the update begins nothing more. Never unset.
  stopped_at timestamptz,
  -- 'drain', or the kind of the rule that stopped it.
  stop_reason text,
  -- For whoever runs the update.
  stop_message text,
  constraint update_guards_stop_check check ((stopped_at is null) = (stop_message is null) and (stopped_at is null) = (stop_reason is null))
);

-- The resources of which an update has begun a delete or a replacement: a replacement is several operations, and counts once.
create table update_guard_changes (
  update_id uuid not null references update_guards (update_id) on delete cascade,
  urn_key text not null,
  primary key (update_id, urn_key)
);

-- Up Migration

-- What may stop an update that sends a journal from beginning more operations.

-- Whether batches that begin operations have to look at update_guards. In the row that every batch locks, so that a batch without a
-- guard reads nothing more.
alter table updates add column is_guarded boolean not null default false;

create table update_guards (
  update_id uuid primary key references updates (id) on delete cascade,
  -- From then on, the update begins nothing more. Never unset.
  stopped_at timestamptz,
  -- 'drain', or the rule that stopped it.
  stop_reason text,
  -- For whoever runs the update.
  stop_message text,
  check ((stopped_at is null) = (stop_message is null) and (stopped_at is null) = (stop_reason is null))
);

-- What retention has deleted, what it must not delete, and which stacks it has looked at.

-- The state of this version was deleted; checkpoint_id is null since.
alter table updates add column state_deleted_at timestamptz;
-- Its events were, or are being, deleted.
alter table updates add column events_deleted_at timestamptz;
-- Who pinned this version, whose state is then kept; as in the audit log.
alter table updates add column pinned_by text;

-- A legal hold: nothing of the stack is deleted meanwhile.
alter table stacks add column held_at timestamptz;
alter table stacks add column held_by text;
alter table stacks add column hold_reason text;
alter table stacks add constraint stacks_hold_check check ((held_at is null) = (held_by is null) and (held_at is null) = (hold_reason is null));

-- Stacks with a rule about retention, since it was applied to them for the first time.
create table stack_retention (
  stack_id uuid primary key references stacks (id) on delete cascade,
  -- When everything that was due then was deleted.
  swept_at timestamptz not null,
  -- The events of updates up to this number are deleted, so that they are not looked at again.
  events_until bigint not null default 0
);

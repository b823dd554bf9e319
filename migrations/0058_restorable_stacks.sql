-- Up Migration

-- A deleted stack keeps its data while it can be restored. All columns are null for a stack that is not deleted.
alter table stacks
  -- Null for a deleted stack: it cannot be restored, and its data is deleted. So it is for those that the release before has deleted.
  add column restorable_until timestamptz,
  -- Its organization while it can be restored, for lists of one.
  add column restorable_in uuid,
  -- Who has deleted it, as the audit log names them.
  add column deleted_by text,
  -- Its newest state. Not in checkpoint_id, which the release before expects to be null. Nobody can delete the state while this refers to it.
  add column deleted_checkpoint_id uuid constraint stacks_deleted_checkpoint_fkey references checkpoints (id);

-- The release before deletes the data of all deleted stacks. Its sweep 'delete-stacks' gets no claim any more: that of this release is
-- 'purge-stacks'. Both triggers protect stacks after a return to the release before, too.
delete from maintenance_runs where name = 'delete-stacks';
create function skip_maintenance() returns trigger language plpgsql as $$
begin
  return null;
end $$;
create trigger maintenance_runs_without_early_purge before insert or update on maintenance_runs
  for each row when (new.name = 'delete-stacks') execute function skip_maintenance();

-- A process of that release may have got its claim, and read which stacks are deleted much later. Its transactions that delete a stack are
-- those without sorts, sequential scans and bitmap scans; each begins with events, or with checkpoints where there are no updates.
create function refuse_early_purge() returns trigger language plpgsql as $$
begin
  raise exception 'The data of deleted stacks is deleted by processes of the newer release only, because stacks may still be restored'
    using errcode = 'object_not_in_prerequisite_state';
end $$;
create trigger engine_events_without_early_purge before delete on engine_events for each statement
  when (current_setting('enable_sort') = 'off' and current_setting('enable_seqscan') = 'off' and current_setting('enable_bitmapscan') = 'off'
    and current_setting('holdfast.purge', true) is distinct from 'on')
  execute function refuse_early_purge();
create trigger checkpoints_without_early_purge before delete on checkpoints for each statement
  when (current_setting('enable_sort') = 'off' and current_setting('enable_seqscan') = 'off' and current_setting('enable_bitmapscan') = 'off'
    and current_setting('holdfast.purge', true) is distinct from 'on')
  execute function refuse_early_purge();

-- Webhooks are told of a restored stack as of other changes.
create function tell_of_restored_stack() returns trigger language plpgsql as $$
begin
  perform tell_webhooks(p.organization_id, new.id, null, 'stack_restored', 'holdfast', '{}')
  from projects p where p.id = new.project_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
create trigger stacks_told_of_restoration after update of deleted_at on stacks
  for each row when (old.deleted_at is not null and new.deleted_at is null) execute function tell_of_restored_stack();

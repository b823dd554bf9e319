-- Up Migration

-- Who lets the runs of a commit delete or replace more than the rules of its stack allow. One row for each stack, kind and commit; the
-- audit log has what became of it. Ids of users, tokens and updates that may be deleted are kept as they were.
create table update_approvals (
  id uuid primary key default gen_random_uuid(),
  -- No reference: it would lock the stack's row where an update is stopped, whose row is locked then, in the opposite order of other changes.
  stack_id uuid not null,
  kind text not null,
  commit_id text not null,
  asked_at timestamptz not null default clock_timestamp(),
  asked_by text not null,
  asked_user_id uuid,
  asked_token_id uuid,
  -- The update that was stopped; null: somebody asked ahead.
  update_id uuid,
  -- What was refused, or what is asked for.
  request text not null,
  approved_at timestamptz,
  approved_by text,
  -- Both null: an operator.
  approved_user_id uuid,
  approved_token_id uuid,
  reason text,
  expires_at timestamptz,
  constraint update_approvals_approved_check check (
    (approved_at is null) = (approved_by is null) and (approved_at is null) = (reason is null) and (approved_at is null) = (expires_at is null))
);
create unique index update_approvals_key on update_approvals (stack_id, kind, commit_id);

create function forget_approvals() returns trigger language plpgsql as $$
begin
  delete from update_approvals where stack_id = old.id;
  return null;
end $$;
create trigger stacks_forget_approvals after delete on stacks for each row execute function forget_approvals();

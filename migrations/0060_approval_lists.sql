-- Without a transaction

-- Lists of approvals read what they return, of an organization and of a stack, given or not. Stacks stay in their organization.
alter table update_approvals add column if not exists organization_id uuid;

-- Next statement
-- A trigger, so that the previous release fills the column, too.
create or replace function place_approval() returns trigger language plpgsql as $$
begin
  new.organization_id := (
    select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id);
  return new;
end $$;

-- Next statement
create or replace trigger update_approvals_placed before insert on update_approvals for each row execute function place_approval();

-- Next statement
-- Webhooks are told of changes of other columns only.
update update_approvals a set organization_id = p.organization_id
from stacks s join projects p on p.id = s.project_id where s.id = a.stack_id and a.organization_id is null;

-- Next statement
drop index concurrently if exists update_approvals_given_of_organization;

-- Next statement
create index concurrently update_approvals_given_of_organization on update_approvals (organization_id, asked_at, id) where approved_at is not null;

-- Next statement
drop index concurrently if exists update_approvals_asked_of_organization;

-- Next statement
create index concurrently update_approvals_asked_of_organization on update_approvals (organization_id, asked_at, id) where approved_at is null;

-- Next statement
drop index concurrently if exists update_approvals_given_of_stack;

-- Next statement
create index concurrently update_approvals_given_of_stack on update_approvals (stack_id, asked_at, id) where approved_at is not null;

-- Next statement
drop index concurrently if exists update_approvals_asked_of_stack;

-- Next statement
create index concurrently update_approvals_asked_of_stack on update_approvals (stack_id, asked_at, id) where approved_at is null;

-- Next statement
analyze update_approvals;

-- Members whom the identity provider of their organization has removed: the bootstrap file does not add them again.

create table removed_members (
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  primary key (organization_id, user_id)
);
create index removed_members_user on removed_members (user_id);

-- Somebody else has added the member.
create function readmit_member() returns trigger language plpgsql as $$
begin
  delete from removed_members where organization_id = new.organization_id and user_id = new.user_id;
  return null;
end $$;
create trigger memberships_readmitted after insert on memberships
  for each row execute function readmit_member();

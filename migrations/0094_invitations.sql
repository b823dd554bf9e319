-- Up Migration

-- Who was asked to become a member of an organization. Bound: 100 for each organization, for 14 days (invitations-repository.ts).
create table invitations (
  organization_id uuid not null references organizations (id) on delete cascade,
  -- As the admin has typed it, who must not learn whether somebody has it.
  login text not null,
  -- Who had the login at that time; null: nobody, so that whoever gets it later is not the one who was meant.
  user_id uuid references users (id) on delete cascade,
  role text not null,
  -- By which user, or by whose token; null: nobody is known.
  invited_by uuid references users (id) on delete cascade,
  invited_by_name text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (organization_id, login),
  constraint invitations_role_check check (role in ('viewer', 'member', 'admin'))
);
create index invitations_user on invitations (user_id);
create index invitations_invited_by on invitations (invited_by);
create index invitations_expires_at on invitations (expires_at);

-- What an admin has offered ends with the right to offer it, and nobody is invited who is a member.
create function end_invitations() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    delete from invitations where organization_id = old.organization_id and invited_by = old.user_id;
  else
    if new.role <> 'admin' then
      delete from invitations where organization_id = new.organization_id and invited_by = new.user_id;
    end if;
    delete from invitations where organization_id = new.organization_id and user_id = new.user_id;
  end if;
  return null;
end $$;
create trigger memberships_end_invitations after insert or update of role or delete on memberships
  for each row execute function end_invitations();

create function end_invitations_of_user() returns trigger language plpgsql as $$
begin
  delete from invitations where invited_by = new.id;
  return null;
end $$;
create trigger users_end_invitations after update of deactivated_at on users
  for each row when (new.deactivated_at is not null) execute function end_invitations_of_user();

-- Up Migration

-- What the identity providers of organizations have said (SCIM). Members are memberships and groups are teams, as for everybody else;
-- these tables have what a provider needs besides.

alter table users
  -- Organization whose provider created the account.
  add column provisioned_by uuid references organizations (id) on delete set null,
  -- The same as deactivated_at if a provider deactivated the user. Differs as soon as somebody else does.
  add column provider_deactivated_at timestamptz;
create index users_login_lower on users (lower(login));

alter table api_tokens
  -- May call SCIM in its organization, and nothing else besides what its scopes and grants say.
  add column is_provisioning boolean not null default false,
  add constraint api_tokens_provisioning_check check (not is_provisioning or kind = 'service') not valid;

create table scim_users (
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  external_id text,
  display_name text not null default '',
  given_name text not null default '',
  family_name text not null default '',
  email text not null default '',
  -- Role that a suspended member gets back.
  suspended_role text,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  primary key (organization_id, user_id),
  constraint scim_users_external_id_key unique (organization_id, external_id)
);
create index scim_users_user on scim_users (user_id);

create table scim_groups (
  team_id uuid primary key references teams (id) on delete cascade,
  organization_id uuid not null references organizations (id) on delete cascade,
  external_id text,
  display_name text not null,
  -- The team was there before the provider: when the group is deleted, the team stays.
  is_adopted boolean not null,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  constraint scim_groups_external_id_key unique (organization_id, external_id)
);
create unique index scim_groups_display_name on scim_groups (organization_id, lower(display_name));

-- Teams of suspended members, who have no membership.
create table scim_waiting_members (
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  is_admin boolean not null default false,
  primary key (team_id, user_id)
);
create index scim_waiting_members_user on scim_waiting_members (user_id);

-- However a suspended member comes back, the teams come back too.
create function resume_member() returns trigger language plpgsql as $$
begin
  with waiting as (
    delete from scim_waiting_members w using teams e
    where e.id = w.team_id and e.organization_id = new.organization_id and w.user_id = new.user_id
    returning w.team_id, w.user_id, w.is_admin
  )
  insert into team_members (team_id, user_id, is_admin) select team_id, user_id, is_admin from waiting on conflict do nothing;
  update scim_users set suspended_role = null
  where organization_id = new.organization_id and user_id = new.user_id and suspended_role is not null;
  return null;
end $$;
create trigger memberships_resumed after insert on memberships
  for each row execute function resume_member();

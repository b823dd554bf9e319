-- Up Migration

-- Named sets of permissions of organizations. A grant that names one has a copy of its permissions: what decides reads grants alone,
-- in this release and in the one before, which does not know roles.
create table roles (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  description text not null default '',
  -- As bits, with all that they need.
  permissions integer not null,
  -- Raised by every change.
  role_version integer not null default 1,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  constraint roles_permissions_check check (permissions > 0 and permissions < 128)
);

-- The CLI finds roles by their names in any case.
create unique index roles_name_key on roles (organization_id, lower(name));

alter table grants
  -- The role that the grant gives: one of the organization, or a built-in one. At most one of them.
  add column role_id uuid references roles (id) on delete cascade,
  add column built_in_role text,
  add constraint grants_role_check check (num_nonnulls(role_id, built_in_role) = 0
    or effect = 'allow' and num_nonnulls(role_id, built_in_role) = 1
      and coalesce(built_in_role in ('viewer', 'member', 'admin'), true)) not valid;

-- The copy is made here, under the lock of the role: whoever changes the role at the same time waits for the grant, or is seen by it.
create function copy_role_permissions() returns trigger language plpgsql as $$
begin
  if new.role_id is null then
    new.permissions := role_permissions(new.built_in_role);
  else
    select permissions into new.permissions from roles
    where id = new.role_id and organization_id = new.organization_id for share;
  end if;
  return new;
end $$;
create trigger grants_of_role before insert or update of role_id, built_in_role, permissions, organization_id on grants
  for each row when (new.role_id is not null or new.built_in_role is not null)
  execute function copy_role_permissions();

-- Changing the grants ends the leases that they no longer permit, as any other change of grants does.
create function role_changed() returns trigger language plpgsql as $$
begin
  update grants set permissions = new.permissions where role_id = new.id;
  return null;
end $$;
create trigger roles_changed after update of permissions on roles
  for each row when (old.permissions is distinct from new.permissions) execute function role_changed();

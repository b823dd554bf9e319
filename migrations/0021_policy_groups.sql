-- Up Migration

-- Which policy packs the updates of which stacks must run. The default group of an organization applies to all stacks that are
-- in no other group.
create table policy_groups (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  is_default boolean not null default false,
  created_at timestamptz not null default now(),
  constraint policy_groups_name_key unique (organization_id, name)
);
create unique index policy_groups_default on policy_groups (organization_id) where is_default;

create table policy_group_stacks (
  group_id uuid not null references policy_groups (id) on delete cascade,
  stack_id uuid not null references stacks (id) on delete cascade,
  primary key (group_id, stack_id)
);
create index policy_group_stacks_stack on policy_group_stacks (stack_id);

create table policy_group_packs (
  group_id uuid not null references policy_groups (id) on delete cascade,
  pack_id uuid not null references policy_packs (id) on delete cascade,
  version_id uuid not null references policy_pack_versions (id),
  -- JSON text: policies with their configuration.
  config text not null default '{}',
  primary key (group_id, pack_id)
);
create index policy_group_packs_pack on policy_group_packs (pack_id);
create index policy_group_packs_version on policy_group_packs (version_id);

-- A trigger, so that organizations that the previous release creates have a default group too.
create function add_default_policy_group() returns trigger language plpgsql as $$
begin
  insert into policy_groups (organization_id, name, is_default) values (new.id, 'default-policy-group', true);
  return null;
end $$;
create trigger organizations_default_policy_group after insert on organizations
  for each row execute function add_default_policy_group();
insert into policy_groups (organization_id, name, is_default) select id, 'default-policy-group', true from organizations;

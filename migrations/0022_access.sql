-- Up Migration

-- Who may do what beyond roles. Permissions are bits: 1 read, 2 preview, 4 write, 8 admin, 16 decrypt, 32 manage, 64 outputs.

-- One row for each organization, so that a change of grants and the start of an update have a row to wait for each other.
create table organization_access (
  organization_id uuid primary key references organizations (id) on delete cascade,
  -- Raised by every change of teams, grants and defaults; 0 means that roles alone decide.
  version bigint not null default 0,
  -- What roles below admin give at most, as bits; null: all that the role has.
  default_permissions integer,
  -- Whether there is, or ever was, something here that takes permissions away from members.
  is_restricted boolean not null default false
);
insert into organization_access (organization_id) select id from organizations;

create function add_organization_access() returns trigger language plpgsql as $$
begin
  insert into organization_access (organization_id) values (new.id) on conflict do nothing;
  return null;
end $$;
create trigger organizations_access after insert on organizations
  for each row execute function add_organization_access();
-- Organizations that the release before has created since the first statement.
insert into organization_access (organization_id) select id from organizations on conflict do nothing;

create table teams (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  display_name text not null default '',
  description text not null default '',
  created_at timestamptz not null default now(),
  constraint teams_name_key unique (organization_id, name)
);

create table team_members (
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  is_admin boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (team_id, user_id)
);
create index team_members_user on team_members (user_id);

alter table api_tokens
  alter column user_id drop not null,
  add column kind text not null default 'personal',
  -- Of all kinds but personal.
  add column organization_id uuid references organizations (id) on delete cascade,
  add column team_id uuid references teams (id) on delete cascade,
  -- Of organization tokens.
  add column role text,
  -- JSON array of {organization, project, stack, permissions}: the token has no more than these give. Null: no limit.
  add column scopes jsonb,
  -- Unique for each owner, of revoked tokens too. Null for tokens without a name.
  add column name text,
  -- User, or null for an operator, who created it.
  add column created_by uuid references users (id) on delete set null,
  -- Token that this one replaced.
  add column replaces uuid,
  -- token_hash is the hash of the hash. The release before does not find such tokens, so it cannot give more than they have.
  add column is_sealed boolean not null default false,
  add constraint api_tokens_kind_check check (case kind
    when 'personal' then user_id is not null and organization_id is null and team_id is null and role is null
    when 'team' then user_id is null and organization_id is not null and team_id is not null and role is null
    when 'organization' then user_id is null and organization_id is not null and team_id is null and role in ('viewer', 'member', 'admin')
    when 'service' then user_id is null and organization_id is not null and team_id is null and role is null and scopes is not null
    else false end) not valid,
  add constraint api_tokens_sealed_check check (is_sealed or (kind = 'personal' and scopes is null)) not valid;
create index api_tokens_organization on api_tokens (organization_id) where organization_id is not null;
create index api_tokens_team on api_tokens (team_id) where team_id is not null;
create unique index api_tokens_user_name on api_tokens (user_id, name) where kind = 'personal' and name is not null;
create unique index api_tokens_team_name on api_tokens (team_id, name) where kind = 'team';
create unique index api_tokens_organization_name on api_tokens (organization_id, kind, name) where kind in ('organization', 'service');

create table grants (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  effect text not null,
  permissions integer not null,
  -- Patterns in which * stands for any characters. All that are given must match; a tag without a value matches any.
  project_pattern text,
  stack_pattern text,
  tag_name text,
  tag_value text,
  -- To whom: one of these.
  user_id uuid references users (id) on delete cascade,
  team_id uuid references teams (id) on delete cascade,
  token_id uuid references api_tokens (id) on delete cascade,
  created_at timestamptz not null default now(),
  created_by uuid references users (id) on delete set null,
  constraint grants_effect_check check (effect in ('allow', 'deny')),
  constraint grants_permissions_check check (permissions > 0 and permissions < 128),
  constraint grants_tag_check check (tag_name <> '' or tag_name is null and tag_value is null),
  constraint grants_subject_check check (num_nonnulls(user_id, team_id, token_id) = 1)
);
create index grants_organization on grants (organization_id);
create index grants_user on grants (user_id, organization_id) where user_id is not null;
create index grants_team on grants (team_id) where team_id is not null;
create index grants_token on grants (token_id) where token_id is not null;

-- What a role gives. The same as rolePermissions in roles.ts.
create function role_permissions(role text) returns integer language sql immutable parallel safe as $$
  select case role when 'viewer' then 17 when 'member' then 23 when 'admin' then 63 else 0 end
$$;

-- Whether the name has the pattern, in which * stands for any characters. A missing pattern matches every name.
create function name_matches(pattern text, name text) returns boolean language sql immutable parallel safe as $$
  select pattern is null
    or name like replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
$$;

-- What decides about the holder of a token in an organization, as JSON: {base, grants, scopes}. Null if the token, its user or
-- the membership is not valid.
create function token_facts(token uuid, organization uuid) returns jsonb language sql stable as $$
  select jsonb_build_object(
    'base', case t.kind
      when 'service' then 63
      when 'team' then 0
      else case when coalesce(t.role, m.role) = 'admin' then role_permissions('admin')
        else role_permissions(coalesce(t.role, m.role)) & coalesce(a.default_permissions, 127) end end,
    'grants', coalesce((
      select jsonb_agg(jsonb_build_object('deny', g.effect = 'deny', 'token', g.token_id is not null, 'permissions', g.permissions,
        'project', g.project_pattern, 'stack', g.stack_pattern, 'tagName', g.tag_name, 'tagValue', g.tag_value))
      -- Three searches, each by its own index, not one through all grants of the organization.
      from (
        select id from grants where user_id = t.user_id
        union all select id from grants where token_id = t.id
        union all select id from grants where team_id = any (t.team_id || array(
          select tm.team_id from team_members tm where tm.user_id = t.user_id))
      ) own join grants g on g.id = own.id and g.organization_id = organization), '[]'),
    'scopes', case when t.scopes is null then null else coalesce((
      select jsonb_agg(jsonb_build_object('permissions', s.permissions, 'project', s.project, 'stack', s.stack))
      from jsonb_to_recordset(t.scopes) as s (organization text, project text, stack text, permissions integer)
      where s.organization is null or s.organization = o.name), '[]') end)
  from api_tokens t
  join organizations o on o.id = organization
  left join organization_access a on a.organization_id = o.id
  left join users u on u.id = t.user_id
  left join memberships m on m.organization_id = o.id and m.user_id = t.user_id
  where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
    and case when t.kind = 'personal' then m.role is not null and u.deactivated_at is null else t.organization_id = o.id end
$$;

-- The permissions that facts give on a stack, as bits: the same rule as decide in access-decision.ts.
create function effective_permissions(facts jsonb, organization uuid, project text, stack text) returns integer
language plpgsql stable as $$
declare
  allowed integer;
  denied integer;
  by_token integer;
  scoped integer;
begin
  if facts is null then return 0; end if;
  select coalesce(bit_or(g.permissions) filter (where not g.deny and not g.token), 0),
    coalesce(bit_or(g.permissions) filter (where g.deny), 0),
    coalesce(bit_or(g.permissions) filter (where not g.deny and g.token), 0)
  into allowed, denied, by_token
  from jsonb_to_recordset(facts -> 'grants') as g (
    deny boolean, token boolean, permissions integer, project text, stack text, "tagName" text, "tagValue" text)
  where name_matches(g.project, $3) and name_matches(g.stack, $4)
    and (g."tagName" is null or exists (
      select 1 from stack_listings l
      where l.organization_id = organization and l.tag_name = g."tagName" and l.project_name = $3 and l.stack_name = $4
        and (g."tagValue" is null or l.tag_value = g."tagValue")));
  allowed := allowed | (facts ->> 'base')::integer;
  if jsonb_typeof(facts -> 'scopes') = 'array' then
    select coalesce(bit_or(s.permissions), 0) into scoped
    from jsonb_to_recordset(facts -> 'scopes') as s (permissions integer, project text, stack text)
    where name_matches(s.project, $3) and name_matches(s.stack, $4);
    allowed := allowed & (scoped | by_token);
  end if;
  allowed := allowed & ~denied;
  -- A permission without those that it needs is none.
  if allowed & 1 = 0 then allowed := allowed & 64; end if;
  if allowed & 2 = 0 then allowed := allowed & ~12; end if;
  if allowed & 4 = 0 then allowed := allowed & ~8; end if;
  return allowed;
end $$;

-- The permissions of the holder of a token on a stack, as bits.
create function token_permissions(token uuid, stack uuid) returns integer language sql stable as $$
  select effective_permissions(token_facts(token, p.organization_id), p.organization_id, p.name, s.name)
  from stacks s join projects p on p.id = s.project_id where s.id = stack
$$;

-- Ends the leases of those active updates of an organization, or of one of its stacks, whose token may no longer do what they do.
create function end_unpermitted_leases(organization uuid, of_stack uuid) returns void language plpgsql as $$
begin
  with lost as (
    select u.id from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
    where u.status in ('not started', 'running') and u.end_reason is null and u.token_id is not null
      and p.organization_id = organization and (of_stack is null or u.stack_id = of_stack)
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0
    order by u.id for update of u
  )
  update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = 'grant-ended'
  from lost where u.id = lost.id;
end $$;

-- Everything below runs in the transaction that changes a grant. Raising the version waits for updates that are being started
-- (they hold the row), and those that start later see the change.
create function change_access(organizations uuid[]) returns void language plpgsql as $$
declare
  id uuid;
begin
  update organization_access a set version = version + 1
  where a.organization_id in (
    select organization_id from organization_access where organization_id = any (organizations) order by 1 for no key update);
  foreach id in array organizations loop
    perform end_unpermitted_leases(id, null);
  end loop;
end $$;

create function grants_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform change_access(array(select distinct organization_id from old_rows));
  elsif tg_op = 'INSERT' then
    update organization_access a set is_restricted = true
    where not is_restricted and organization_id in (select organization_id from new_rows where effect = 'deny');
    perform change_access(array(select distinct organization_id from new_rows));
  else
    update organization_access a set is_restricted = true
    where not is_restricted and organization_id in (select organization_id from new_rows where effect = 'deny');
    perform change_access(array(select organization_id from new_rows union select organization_id from old_rows));
  end if;
  return null;
end $$;
create trigger grants_inserted after insert on grants
  referencing new table as new_rows for each statement execute function grants_changed();
create trigger grants_updated after update on grants
  referencing old table as old_rows new table as new_rows for each statement execute function grants_changed();
create trigger grants_deleted after delete on grants
  referencing old table as old_rows for each statement execute function grants_changed();

create function team_members_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform change_access(array(select distinct e.organization_id from new_rows r join teams e on e.id = r.team_id));
  elsif tg_op = 'DELETE' then
    perform change_access(array(select distinct e.organization_id from old_rows r join teams e on e.id = r.team_id));
  else
    perform change_access(array(
      select e.organization_id from new_rows r join teams e on e.id = r.team_id
      union select e.organization_id from old_rows r join teams e on e.id = r.team_id));
  end if;
  return null;
end $$;
create trigger team_members_inserted after insert on team_members
  referencing new table as new_rows for each statement execute function team_members_changed();
create trigger team_members_updated after update on team_members
  referencing old table as old_rows new table as new_rows for each statement execute function team_members_changed();
create trigger team_members_deleted after delete on team_members
  referencing old table as old_rows for each statement execute function team_members_changed();

create function default_permissions_changed() returns trigger language plpgsql as $$
begin
  if new.default_permissions is not null and not new.is_restricted then
    update organization_access set is_restricted = true where organization_id = new.organization_id;
  end if;
  perform change_access(array[new.organization_id]);
  return null;
end $$;
create trigger organization_access_changed after update of default_permissions on organization_access
  for each row when (old.default_permissions is distinct from new.default_permissions)
  execute function default_permissions_changed();

-- A token whose scopes or role change, and a membership whose role does, end what they no longer permit.
create function token_rights_changed() returns trigger language plpgsql as $$
begin
  with lost as (
    select u.id from updates u
    where u.token_id = new.id and u.status in ('not started', 'running') and u.end_reason is null
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0
    order by u.id for update of u
  )
  update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = 'grant-ended'
  from lost where u.id = lost.id;
  return null;
end $$;
create trigger api_tokens_rights after update of scopes, role, kind, organization_id, team_id on api_tokens
  for each row when ((old.scopes, old.role, old.kind, old.organization_id, old.team_id)
    is distinct from (new.scopes, new.role, new.kind, new.organization_id, new.team_id))
  execute function token_rights_changed();

-- A viewer may update stacks by grants. So a role below member ends only the leases that nothing else permits.
create or replace function end_leases_of_member() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.user_id = old.user_id and new.organization_id = old.organization_id
    and exists (select 1 from organization_access where organization_id = new.organization_id and version > 0) then
    with lost as (
      select u.id from updates u join api_tokens t on t.id = u.token_id
      join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
      where t.user_id = new.user_id and p.organization_id = new.organization_id
        and u.status in ('not started', 'running') and u.end_reason is null
        and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0
      order by u.id for update of u
    )
    update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = 'membership-ended'
    from lost where u.id = lost.id;
    return null;
  end if;
  perform end_leases(array(select id from api_tokens where user_id = old.user_id), old.organization_id, 'membership-ended');
  return null;
end $$;
create trigger memberships_weakened after update of role on memberships
  for each row when (new.role = 'member' and old.role = 'admin') execute function end_leases_of_member();

-- Whoever joins again begins without the grants and teams of the first time.
create function forget_member() returns trigger language plpgsql as $$
begin
  delete from grants where user_id = old.user_id and organization_id = old.organization_id;
  delete from team_members where user_id = old.user_id
    and team_id in (select id from teams where organization_id = old.organization_id);
  return null;
end $$;
create trigger memberships_forgotten after delete on memberships
  for each row execute function forget_member();

-- A change of names or tags can change which grants match.
create function stack_access_changed() returns trigger language plpgsql as $$
declare
  organization uuid;
begin
  select p.organization_id into organization
  from projects p join organization_access a on a.organization_id = p.organization_id
  where p.id = new.project_id and (a.version > 0 or exists (
    select 1 from updates u join api_tokens t on t.id = u.token_id
    where u.stack_id = new.id and u.status in ('not started', 'running') and t.is_sealed));
  if organization is not null then perform end_unpermitted_leases(organization, new.id); end if;
  return null;
end $$;
-- Named to run after the trigger that keeps stack_listings, from which tags are read.
create trigger stacks_zz_access after update of project_id, name, tags on stacks
  for each row when ((old.project_id, old.name, old.tags) is distinct from (new.project_id, new.name, new.tags))
  execute function stack_access_changed();

-- Tokens of members of a restricted organization are sealed, whoever writes them.
create function seal_token() returns trigger language plpgsql as $$
begin
  if not new.is_sealed and (new.kind <> 'personal' or new.scopes is not null or exists (
    select 1 from memberships m join organization_access a on a.organization_id = m.organization_id
    where m.user_id = new.user_id and a.is_restricted)) then
    new.token_hash := sha256(new.token_hash);
    new.is_sealed := true;
  end if;
  return new;
end $$;
create trigger api_tokens_sealed before insert or update of user_id, kind, scopes, is_sealed on api_tokens
  for each row when (not new.is_sealed) execute function seal_token();

create function seal_tokens_of_organization() returns trigger language plpgsql as $$
begin
  update api_tokens t set is_sealed = false from memberships m
  where m.organization_id = new.organization_id and m.user_id = t.user_id and not t.is_sealed;
  return null;
end $$;
create trigger organization_access_restricted after update of is_restricted on organization_access
  for each row when (new.is_restricted and not old.is_restricted) execute function seal_tokens_of_organization();

create function seal_tokens_of_member() returns trigger language plpgsql as $$
begin
  if exists (select 1 from organization_access where organization_id = new.organization_id and is_restricted) then
    update api_tokens set is_sealed = false where user_id = new.user_id and not is_sealed;
  end if;
  return null;
end $$;
create trigger memberships_seal after insert or update of organization_id, user_id on memberships
  for each row execute function seal_tokens_of_member();

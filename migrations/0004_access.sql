-- Rights of the holder of a token beyond roles. Permissions are bits: 1 read, 2 preview, 4 write, 8 admin, 16 decrypt, 32 manage,
-- 64 outputs (the outputs of a stack and nothing else; with decrypt also the secret ones). Limits of organizations are here, too.

-- One row for each organization, so that a change of grants and the start of an update have a row to wait for each other.
create table organization_access (
  organization_id uuid primary key references organizations (id) on delete cascade,
  -- Raised by every change of teams, grants and defaults; 0 means that roles alone decide.
  version bigint not null default 0,
  -- What roles below admin give at most, as bits; null: all that the role has.
  default_permissions integer,
  -- Longest life of a token, in seconds; null: no limit.
  max_token_seconds bigint
);

-- Named sets of permissions of organizations. A grant that names one has a copy of its permissions, so that decisions read grants alone.
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

-- Grants: permissions that subjects have, or are denied, on stacks.
create table grants (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  effect text not null,
  permissions integer not null,
  -- The role that the grant gives: one of the organization, or a built-in one. At most one of them.
  role_id uuid references roles (id) on delete cascade,
  built_in_role text,
  -- Patterns in which * stands for any characters. All given ones must match; a tag without a value matches any.
  project_pattern text,
  stack_pattern text,
  tag_name text,
  tag_value text,
  -- The subject: one of these.
  user_id uuid references users (id) on delete cascade,
  team_id uuid references teams (id) on delete cascade,
  token_id uuid references api_tokens (id) on delete cascade,
  created_at timestamptz not null default now(),
  created_by uuid references users (id) on delete set null,
  constraint grants_effect_check check (effect in ('allow', 'deny')),
  constraint grants_permissions_check check (permissions > 0 and permissions < 128),
  constraint grants_tag_check check (tag_name <> '' or tag_name is null and tag_value is null),
  constraint grants_subject_check check (num_nonnulls(user_id, team_id, token_id) = 1),
  constraint grants_role_check check (num_nonnulls(role_id, built_in_role) = 0
    or effect = 'allow' and num_nonnulls(role_id, built_in_role) = 1
    and coalesce(built_in_role in ('viewer', 'member', 'admin'), true))
);
create index grants_user on grants (user_id, organization_id) where user_id is not null;
create index grants_team on grants (team_id) where team_id is not null;
create index grants_token on grants (token_id) where token_id is not null;
-- Grants of an organization, page by page.
create index grants_page on grants (organization_id, created_at, id);
-- Grants of a role, for when it changes or is deleted.
create index grants_role on grants (role_id) where role_id is not null;

-- Limits that override the settings for an organization. Null means the value of the settings, 0 means no limit.
create table organization_quotas (
  organization_id uuid primary key references organizations (id) on delete cascade,
  stacks bigint,
  kept_bytes bigint,
  in_flight_bytes bigint,
  updates bigint,
  requests_per_second bigint,
  constraint organization_quotas_check
    check (least(stacks, kept_bytes, in_flight_bytes, updates, requests_per_second) >= 0)
);

-- Last measured storage use of organizations with a limit on stored bytes.
create table organization_usage (
  organization_id uuid primary key references organizations (id) on delete cascade,
  kept_bytes bigint not null,
  measured_at timestamptz not null default now(),
  -- Duration of the measurement. Slow ones are repeated less often.
  took_ms integer not null default 0
);

create function add_organization_access() returns trigger language plpgsql as $$
begin
  insert into organization_access (organization_id) values (new.id) on conflict do nothing;
  return null;
end $$;
create trigger organizations_access after insert on organizations
  for each row execute function add_organization_access();

-- The permissions of a role. The same as rolePermissions in roles.ts.
create function role_permissions(role text) returns integer language sql immutable parallel safe as $$
  select case role when 'viewer' then 17 when 'member' then 23 when 'admin' then 63 else 0 end
$$;

-- The copy is made here, under the lock of the role: a concurrent change of the role waits for the grant, or is visible to it.
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

-- Whether the name matches the pattern, in which * stands for any characters. A missing pattern matches every name.
create function name_matches(pattern text, name text) returns boolean language sql immutable parallel safe as $$
  select pattern is null
    or name like replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
$$;

-- The facts that decide what the holder of a token may do in an organization, as JSON: {base, grants, scopes}. Null if the token, its user or
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

-- The permissions on a stack according to facts, as bits: the same rule as decide in access-decision.ts.
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
  allowed := (allowed | (facts ->> 'base')::integer) & ~denied;
  -- A holder who may read a stack may also read its outputs (64), so a token may be limited to outputs alone.
  if allowed & 1 = 1 then allowed := allowed | (64 & ~denied); end if;
  if jsonb_typeof(facts -> 'scopes') = 'array' then
    select coalesce(bit_or(s.permissions), 0) into scoped
    from jsonb_to_recordset(facts -> 'scopes') as s (permissions integer, project text, stack text)
    where name_matches(s.project, $3) and name_matches(s.stack, $4);
    allowed := allowed & (scoped | by_token);
  end if;
  -- A permission without the permissions that it needs has no effect.
  if allowed & 1 = 0 then allowed := case when allowed & 64 = 64 then allowed & 80 else 0 end; end if;
  if allowed & 2 = 0 then allowed := allowed & ~12; end if;
  if allowed & 4 = 0 then allowed := allowed & ~8; end if;
  return allowed;
end $$;

-- The permissions of the holder of a token on a stack, as bits.
create function token_permissions(token uuid, stack uuid) returns integer language sql stable as $$
  select effective_permissions(token_facts(token, p.organization_id), p.organization_id, p.name, s.name)
  from stacks s join projects p on p.id = s.project_id where s.id = stack
$$;

-- Whether the token does not belong to a session, or belongs to a live one. The result holds until the end of the transaction. Transactions that
-- change the rights of a user and end their sessions have locked the user exclusively before, so call this after the user is locked.
create function hold_session(token uuid) returns boolean language plpgsql as $$
begin
  if exists (select 1 from api_tokens t where t.id = token and t.is_session) then
    perform 1 from sessions s where s.id = token for share;
    return found;
  end if;
  return true;
end $$;

-- What the holder of a token may do in an organization; no row if the token is not valid there. The result holds until the end of the transaction:
-- the rights of a user are locked by the user's lock key, the grants of an organization by its id. The last statement sees commits made
-- during the wait for the locks.
create function hold_access(token uuid, organization_name text) returns table (role text, "isPlain" boolean, facts jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  owner uuid;
  organization uuid;
begin
  select t.user_id, o.id into owner, organization
  from api_tokens t join organizations o on o.name = organization_name where t.id = token;
  if organization is null then return; end if;
  if owner is not null then perform lock_shared(place_of_user(owner)); end if;
  perform lock_shared(organization);
  if not hold_session(token) then return; end if;
  return query
    select coalesce(m.role, t.role), p.plain, case when not p.plain then token_facts(t.id, o.id) end
    from api_tokens t join organizations o on o.id = organization join organization_access a on a.organization_id = o.id
    left join users u on u.id = t.user_id left join memberships m on m.organization_id = o.id and m.user_id = t.user_id
    cross join lateral (select a.version = 0 and not t.is_limited as plain) p
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and case when t.kind = 'personal' then m.role is not null and u.deactivated_at is null else t.organization_id = o.id end;
end $$;

-- Whether the token, and its user if it has one, is valid. The result holds until the end of the transaction.
create function hold_owner(token uuid) returns boolean language plpgsql as $$
declare
  owner uuid;
begin
  select coalesce(place_of_user(user_id), organization_id) into owner from api_tokens where id = token;
  if owner is null then return false; end if;
  perform lock_shared(owner);
  return hold_session(token) and exists (
    select 1 from api_tokens t left join users u on u.id = t.user_id
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and u.deactivated_at is null);
end $$;

-- Whether the user is active. The result holds until the end of the transaction.
create function hold_user(id uuid) returns boolean language plpgsql as $$
begin
  perform lock_shared(place_of_user(id));
  return exists (select 1 from users u where u.id = hold_user.id and u.deactivated_at is null);
end $$;

-- Ends the leases of active updates of an organization, or of one of its stacks, whose token no longer has the rights that they need.
create function end_unpermitted_leases(organization uuid, of_stack uuid) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    select u.id from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
    where u.status in ('not started', 'running') and u.end_reason is null and u.token_id is not null
      and p.organization_id = organization and (of_stack is null or u.stack_id = of_stack)
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
    'grant-ended');
end $$;

-- Runs in the transaction that changes grants, teams or defaults. Raising the version waits for updates that are being started; later ones
-- see the change.
create function change_access(organizations uuid[]) returns void language plpgsql as $$
declare
  id uuid;
begin
  foreach id in array array(select unnest(organizations) order by 1) loop
    perform lock_exclusive(id);
  end loop;
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
    perform change_access(array(select distinct organization_id from new_rows));
  else
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
  perform change_access(array[new.organization_id]);
  return null;
end $$;
create trigger organization_access_changed after update of default_permissions on organization_access
  for each row when (old.default_permissions is distinct from new.default_permissions)
  execute function default_permissions_changed();

-- A change of names or tags can change which grants match.
create function stack_access_changed() returns trigger language plpgsql as $$
declare
  organization uuid;
begin
  select p.organization_id into organization
  from projects p join organization_access a on a.organization_id = p.organization_id
  where p.id = new.project_id and (a.version > 0 or exists (
    select 1 from updates u join api_tokens t on t.id = u.token_id
    where u.stack_id = new.id and u.status in ('not started', 'running') and t.is_limited));
  if organization is not null then perform end_unpermitted_leases(organization, new.id); end if;
  return null;
end $$;
-- Named to run after the trigger that keeps stack_listings, from which tags are read.
create trigger stacks_zz_access after update of project_id, name, tags on stacks
  for each row when ((old.project_id, old.name, old.tags) is distinct from (new.project_id, new.name, new.tags))
  execute function stack_access_changed();

-- A user who rejoins starts without the grants and teams of the first membership.
create function forget_member() returns trigger language plpgsql as $$
begin
  delete from grants where user_id = old.user_id and organization_id = old.organization_id;
  delete from team_members where user_id = old.user_id
    and team_id in (select id from teams where organization_id = old.organization_id);
  return null;
end $$;
create trigger memberships_forgotten after delete on memberships
  for each row execute function forget_member();

-- Lifetimes do not apply to tokens that a bootstrap file lists: they are replaced by changing the file.
-- Sessions have limits of their own: a policy on the lifetime of tokens does not end them.
create function limit_token_life() returns trigger language plpgsql as $$
declare
  seconds bigint;
begin
  if new.listed_in is not null or new.is_session then return new; end if;
  select min(a.max_token_seconds) into seconds from organization_access a
  where a.max_token_seconds is not null and (a.organization_id = new.organization_id
    or a.organization_id in (select m.organization_id from memberships m where m.user_id = new.user_id));
  if seconds is not null then
    new.expires_at := least(new.expires_at, coalesce(new.rotated_at, new.created_at) + make_interval(secs => seconds));
  end if;
  return new;
end $$;
create trigger api_tokens_limited before insert or update of expires_at, user_id, organization_id, rotated_at on api_tokens
  for each row execute function limit_token_life();

create function max_token_life_changed() returns trigger language plpgsql as $$
begin
  update api_tokens t set expires_at = t.expires_at
  where t.revoked_at is null and (t.organization_id = new.organization_id
    or t.user_id in (select m.user_id from memberships m where m.organization_id = new.organization_id));
  return null;
end $$;
create trigger organization_access_token_life after update of max_token_seconds on organization_access
  for each row when (new.max_token_seconds is not null and new.max_token_seconds is distinct from old.max_token_seconds)
  execute function max_token_life_changed();

create function limit_tokens_of_member() returns trigger language plpgsql as $$
begin
  if exists (select 1 from organization_access where organization_id = new.organization_id and max_token_seconds is not null) then
    update api_tokens set expires_at = expires_at where user_id = new.user_id and revoked_at is null;
  end if;
  return null;
end $$;
create trigger memberships_token_life after insert or update of organization_id, user_id on memberships
  for each row execute function limit_tokens_of_member();

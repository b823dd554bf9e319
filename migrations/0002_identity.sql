-- Organizations, users, teams and tokens, and the authentication of users and CI runs.

create table organizations (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  created_at timestamptz not null default now(),
  constraint organizations_name_key unique (name)
);

create table users (
  id uuid primary key default gen_random_uuid(),
  login text not null,
  display_name text not null default '',
  email text not null default '',
  site_admin boolean not null default false,
  -- Organization under which the bootstrap file made this user a site admin.
  site_admin_listed_in uuid references organizations (id) on delete set null,
  -- A deactivated user cannot log in. Clearing the time reactivates the user.
  deactivated_at timestamptz,
  -- Organization whose provider created the account.
  provisioned_by uuid references organizations (id) on delete set null,
  -- The same as deactivated_at if a provider deactivated the user. Differs as soon as another actor does.
  provider_deactivated_at timestamptz,
  created_at timestamptz not null default now(),
  constraint users_login_key unique (login)
);
create index users_login_lower on users (lower(login));

create table memberships (
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  role text not null,
  -- Whether the bootstrap file created or last changed it.
  is_listed boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (organization_id, user_id),
  constraint memberships_role_check check (role in ('viewer', 'member', 'admin'))
);
create index memberships_user on memberships (user_id);

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

-- Only the SHA-256 of a token is stored. Tokens have 256 random bits, so they need no salt.
create table api_tokens (
  id uuid primary key default gen_random_uuid(),
  kind text not null default 'personal',
  user_id uuid references users (id) on delete cascade,
  -- Of all kinds but personal.
  organization_id uuid references organizations (id) on delete cascade,
  team_id uuid references teams (id) on delete cascade,
  -- Of organization tokens.
  role text,
  -- JSON array of {organization, project, stack, permissions}: the token has at most these permissions. Null: no limit.
  scopes jsonb,
  -- Unique for each owner, of revoked tokens too. Null for tokens without a name.
  name text,
  description text not null default '',
  token_hash bytea not null,
  -- Whether the token's rights depend on more than the role and the grants of its user.
  is_limited boolean not null generated always as (kind <> 'personal' or scopes is not null) stored,
  -- Hash of the previous secret, and until when it is valid.
  previous_hash bytea,
  previous_until timestamptz,
  -- When the current secret was created, if it is not the first one.
  rotated_at timestamptz,
  -- The user who last replaced the secret of the token, and so knows it; null: never replaced, or by an operator. No foreign key: deleted users do
  -- not matter.
  rotated_by uuid,
  created_at timestamptz not null default now(),
  -- User, or null for an operator, who created it.
  created_by uuid references users (id) on delete set null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  -- Rights of browser sessions are determined like rights of tokens: each session that calls the dashboard's API has a row here, with the id of the
  -- session. No client can present it as a token: its hash is of a value that was discarded.
  is_session boolean not null default false,
  -- May call SCIM in its organization, and otherwise only what its scopes and grants allow.
  is_provisioning boolean not null default false,
  -- Organization under which the bootstrap file lists this token.
  listed_in uuid references organizations (id) on delete set null,
  -- Revoked because the bootstrap file no longer lists it; restored when the file lists it again.
  is_withdrawn boolean not null default false,
  -- The policy under which the token was issued. No foreign key: the revoked token outlives it.
  policy_id uuid,
  -- Claims of the id token, by which a later policy may end it.
  claims jsonb,
  constraint api_tokens_hash_key unique (token_hash),
  constraint api_tokens_kind_check check (case kind
    when 'personal' then user_id is not null and organization_id is null and team_id is null and role is null
    when 'team' then user_id is null and organization_id is not null and team_id is not null and role is null
    when 'organization' then user_id is null and organization_id is not null and team_id is null and role in ('viewer', 'member', 'admin')
    when 'service' then user_id is null and organization_id is not null and team_id is null and role is null and scopes is not null
    else false end),
  constraint api_tokens_provisioning_check check (not is_provisioning or kind = 'service')
);
create index api_tokens_user on api_tokens (user_id);
create index api_tokens_organization on api_tokens (organization_id) where organization_id is not null;
create index api_tokens_team on api_tokens (team_id) where team_id is not null;
create unique index api_tokens_user_name on api_tokens (user_id, name) where kind = 'personal' and name is not null;
create unique index api_tokens_team_name on api_tokens (team_id, name) where kind = 'team';
create unique index api_tokens_organization_name on api_tokens (organization_id, kind, name) where kind in ('organization', 'service');
create unique index api_tokens_previous_hash on api_tokens (previous_hash) where previous_hash is not null;
create index api_tokens_policy on api_tokens (policy_id) where policy_id is not null;
create index api_tokens_session on api_tokens (expires_at) where is_session;
create index api_tokens_ended on api_tokens (least(revoked_at, expires_at))
  where least(revoked_at, expires_at) is not null and not is_session;

-- Users who may sign in with a password.
create table user_passwords (
  user_id uuid primary key references users (id) on delete cascade,
  -- Argon2id as a PHC string.
  password_hash text not null,
  changed_at timestamptz not null default now()
);

-- Passkeys (WebAuthn) with which users may sign in.
create table passkeys (
  -- As browsers write it, in base64url.
  credential_id text primary key,
  user_id uuid not null references users (id) on delete cascade,
  public_key bytea not null,
  -- How often the authenticator has signed, if it counts; a copy of it would repeat a number.
  counter bigint not null,
  transports text not null default '',
  name text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkeys_user_id on passkeys (user_id);

-- Users who are signed in by a browser. A session ends when its row is deleted.
create table sessions (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references users (id) on delete cascade,
  -- SHA-256 of the value of the cookie.
  session_hash bytea not null,
  -- How the user signed in.
  method text not null,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  user_agent text not null default '',
  address text not null default '',
  constraint sessions_session_hash_key unique (session_hash),
  constraint sessions_method_check check (method in ('password', 'passkey', 'provider'))
);
create index sessions_user_id on sessions (user_id);

-- Attempts to sign in, counted for all replicas: written by rate-limiter-flexible, which names the columns.
create table sign_in_attempts (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index sign_in_attempts_expire on sign_in_attempts (expire);

-- How fast passwords of a login may be tried by browsers that have not signed in with it before. Each attempt increments the counter, and every
-- three minutes decrement it; above a threshold, the next attempt must wait. Rows that no longer delay attempts are deleted.
create table sign_in_paces (
  -- SHA-256 of the login as typed, in lower case.
  login_hash text primary key,
  level double precision not null,
  -- When the counter had that value.
  at timestamptz not null,
  -- The time from which the next attempt may be made.
  next_at timestamptz not null
);
create index sign_in_paces_at on sign_in_paces (at);

-- Sign-ins that have begun and wait for the browser to come back. Each is taken once.
create table sign_in_flows (
  -- SHA-256 of the value of the cookie of the browser.
  flow_hash bytea primary key,
  kind text not null,
  -- JSON text.
  data text not null,
  expires_at timestamptz not null
);
create index sign_in_flows_expires_at on sign_in_flows (expires_at);

-- Who a user is at a provider of identities. A login or an e-mail address is never an identity.
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id uuid not null references users (id) on delete cascade,
  last_sign_in_at timestamptz,
  primary key (issuer, subject)
);
create index user_identities_user_id on user_identities (user_id);

-- Roles and teams assigned by groups of the provider. A role that differs now was set by hand.
create table mapped_memberships (
  organization_id uuid not null,
  user_id uuid not null,
  role text not null,
  primary key (organization_id, user_id),
  foreign key (organization_id, user_id) references memberships (organization_id, user_id) on delete cascade
);

create table mapped_team_members (
  team_id uuid not null,
  user_id uuid not null,
  primary key (team_id, user_id),
  foreign key (team_id, user_id) references team_members (team_id, user_id) on delete cascade
);

-- Invitations to become a member of an organization. Bound: 100 for each organization, for 14 days (invitation-repository.ts).
create table invitations (
  organization_id uuid not null references organizations (id) on delete cascade,
  -- As the admin typed it; the admin must not learn whether the login exists.
  login text not null,
  -- The user who had the login at that time; null: no user, so a later user with this login is not the invited one.
  user_id uuid references users (id) on delete cascade,
  role text not null,
  -- The inviting user, or the user of the inviting token; null: unknown.
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

-- Data of the identity provider of an organization about a member (SCIM). Members are memberships and groups are teams, as everywhere; these three
-- tables hold the additional data of a provider.
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
  -- The team existed before the provider managed it: when the group is deleted, the team stays.
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

-- Issuers whose id tokens an organization exchanges for tokens of its own, by the policies below.
create table trusted_issuers (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  -- The `iss` of its tokens, and where its keys are found.
  url text not null,
  -- The audience that its tokens must have.
  audience text not null,
  -- Whether an id token is exchanged once, or as often as its holder likes while it lives.
  replay text not null default 'once',
  -- Longest lifetime of the issued tokens, in seconds; null: the default.
  max_seconds integer,
  -- JSON text of its public keys, if they are not fetched.
  jwks text,
  policy_version integer not null default 1,
  created_at timestamptz not null default now(),
  modified_at timestamptz not null default now(),
  created_by uuid references users (id) on delete set null,
  constraint trusted_issuers_name_key unique (organization_id, name),
  constraint trusted_issuers_url_key unique (organization_id, url),
  constraint trusted_issuers_replay_check check (replay in ('once', 'within-life')),
  constraint trusted_issuers_max_seconds_check check (max_seconds > 0)
);

-- Policies of issuers. Rows are not updated: a changed policy is a new row, and ends the tokens of this one.
create table trust_policies (
  id uuid primary key default gen_random_uuid(),
  issuer_id uuid not null references trusted_issuers (id) on delete cascade,
  position integer not null,
  decision text not null,
  token_kind text not null,
  team_id uuid references teams (id) on delete cascade,
  user_id uuid references users (id) on delete cascade,
  -- Whether an organization's token may have the role admin.
  is_admin boolean not null default false,
  -- Patterns by the path of a claim: {"sub": ["repo:acme/*"]}.
  rules jsonb not null,
  -- As in api_tokens.
  scopes jsonb,
  max_seconds integer,
  created_by uuid references users (id) on delete set null,
  constraint trust_policies_decision_check check (decision in ('allow', 'deny')),
  constraint trust_policies_team_check check (token_kind = 'team' or team_id is null),
  constraint trust_policies_user_check check (token_kind = 'personal' or user_id is null),
  constraint trust_policies_allow_check check (decision = 'deny' or (case token_kind
    when 'team' then team_id is not null when 'personal' then user_id is not null
    when 'service' then scopes is not null else true end)),
  constraint trust_policies_admin_check check (not is_admin or token_kind = 'organization'),
  constraint trust_policies_kind_check check (
    token_kind in ('personal', 'team', 'organization', 'service') or (token_kind = 'any' and decision = 'deny'))
);
create index trust_policies_issuer on trust_policies (issuer_id, position);
create index trust_policies_team on trust_policies (team_id) where team_id is not null;
create index trust_policies_user on trust_policies (user_id) where user_id is not null;

-- Id tokens that were exchanged, until they expire: each is exchanged once, on whichever replica.
create table exchanged_id_tokens (
  -- SHA-256 of organization, issuer and the token's id there. No foreign keys: an issuer that is removed and added
  -- again must not exchange them a second time.
  key bytea primary key,
  -- SHA-256 of the request and its client address.
  request bytea not null,
  token_id uuid not null,
  exchanged_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index exchanged_id_tokens_expiry on exchanged_id_tokens (expires_at);

-- The advisory lock key of a user. There are 1,024 keys, so that a transaction that changes the rights of any number of users takes at most that
-- many locks: the lock table of Postgres holds a few thousand.
create function place_of_user(id uuid) returns uuid language sql immutable strict parallel safe as $$
  select lpad(to_hex(hashtextextended(id::text, 70) & 1023), 32, '0')::uuid
$$;

-- Deactivating a user or changing a password ends the sessions in the same transaction.
create function end_sessions_of_user() returns trigger language plpgsql as $$
begin
  delete from sessions where user_id = old.id;
  return null;
end $$;
create trigger users_end_sessions after update of deactivated_at on users
  for each row when (new.deactivated_at is not null) execute function end_sessions_of_user();

create function end_sessions_of_password() returns trigger language plpgsql as $$
begin
  delete from sessions where user_id = old.user_id;
  return null;
end $$;
create trigger user_passwords_end_sessions after update or delete on user_passwords
  for each row execute function end_sessions_of_password();

-- Invitations end with the admin rights of their author, and when the invited user becomes a member.
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

-- When a suspended member returns, in any way, the teams are restored too.
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

-- However a policy is deleted, its tokens are revoked with it.
create function revoke_tokens_of_policy() returns trigger language plpgsql as $$
begin
  update api_tokens set revoked_at = now() where policy_id = old.id and revoked_at is null;
  return null;
end $$;
create trigger trust_policies_removed after delete on trust_policies
  for each row execute function revoke_tokens_of_policy();

-- A user who rejoins starts without the tokens that policies issued the first time.
create function forget_trust_in_member() returns trigger language plpgsql as $$
begin
  delete from trust_policies where user_id = old.user_id
    and issuer_id in (select id from trusted_issuers where organization_id = old.organization_id);
  return null;
end $$;
create trigger memberships_forget_trust after delete on memberships
  for each row execute function forget_trust_in_member();

-- The users behind a token, as far as known: its user, its creator and the user who rotated it; for a token of a CI run, the member of its
-- organization that the id token names as the starter of the run, as GitHub (actor) and GitLab (user_login, user_email) do.
create function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by] || case when t.policy_id is null then '{}' else array(
    select u.id from memberships m join users u on u.id = m.user_id
    where m.organization_id = t.organization_id
      and (lower(u.login) in (lower(t.claims ->> 'actor'), lower(t.claims ->> 'user_login'))
        or u.email <> '' and lower(u.email) = lower(t.claims ->> 'user_email'))) end, null)
  from (values (of_token)) one (id) left join api_tokens t on t.id = one.id
$$;

-- Up Migration

-- Issuers whose id tokens an organization exchanges for tokens of its own, by the policies below.
create table trusted_issuers (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  -- The `iss` of its tokens, and where its keys are found.
  url text not null,
  -- What its tokens must be made for.
  audience text not null,
  -- Whether an id token is exchanged once, or as often as its holder likes while it lives.
  replay text not null default 'once',
  -- Longest life of the tokens that are given, in seconds; null: the default.
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

-- What is given to whom. Rows are not updated: another policy is another row, and ends the tokens of this one.
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
  created_at timestamptz not null default now(),
  created_by uuid references users (id) on delete set null,
  constraint trust_policies_decision_check check (decision in ('allow', 'deny')),
  constraint trust_policies_kind_check check (token_kind in ('personal', 'team', 'organization', 'service')),
  constraint trust_policies_team_check check (token_kind = 'team' or team_id is null),
  constraint trust_policies_user_check check (token_kind = 'personal' or user_id is null),
  constraint trust_policies_allow_check check (decision = 'deny' or (case token_kind
    when 'team' then team_id is not null when 'personal' then user_id is not null
    when 'service' then scopes is not null else true end)),
  constraint trust_policies_admin_check check (not is_admin or token_kind = 'organization')
);
create index trust_policies_issuer on trust_policies (issuer_id, position);
create index trust_policies_team on trust_policies (team_id) where team_id is not null;
create index trust_policies_user on trust_policies (user_id) where user_id is not null;

alter table api_tokens
  -- The policy by which the token was given. No foreign key: the token outlives it, revoked.
  add column policy_id uuid,
  -- Claims of the id token, by which a later policy may end it.
  add column claims jsonb;
create index api_tokens_policy on api_tokens (policy_id) where policy_id is not null;

-- Whichever way a policy goes, its tokens go with it.
create function revoke_tokens_of_policy() returns trigger language plpgsql as $$
begin
  update api_tokens set revoked_at = now() where policy_id = old.id and revoked_at is null;
  return null;
end $$;
create trigger trust_policies_removed after delete on trust_policies
  for each row execute function revoke_tokens_of_policy();

-- Whoever joins again begins without what policies gave the first time.
create function forget_trust_in_member() returns trigger language plpgsql as $$
begin
  delete from trust_policies where user_id = old.user_id
    and issuer_id in (select id from trusted_issuers where organization_id = old.organization_id);
  return null;
end $$;
create trigger memberships_forget_trust after delete on memberships
  for each row execute function forget_trust_in_member();

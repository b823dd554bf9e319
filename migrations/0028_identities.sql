-- Up Migration

-- Who a user is at a provider of identities. A login or an e-mail address is never an identity.
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id uuid not null references users (id) on delete cascade,
  created_at timestamptz not null default now(),
  last_sign_in_at timestamptz,
  primary key (issuer, subject)
);
create index user_identities_user_id on user_identities (user_id);

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

-- Roles and teams that groups of the provider have given. A role that is another one now was set by hand.
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

-- Up Migration

-- Id tokens that were exchanged, until they expire: each is exchanged once, on whichever replica.
create table exchanged_id_tokens (
  -- SHA-256 of organization, issuer and what identifies the token there. No foreign keys: an issuer that is removed and added
  -- again must not exchange them a second time.
  key bytea primary key,
  -- SHA-256 of what was asked for, and from which address.
  request bytea not null,
  token_id uuid not null,
  exchanged_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index exchanged_id_tokens_expiry on exchanged_id_tokens (expires_at);

-- Links by which a user signs in without a password, once. Only the SHA-256 of a link's secret is stored.
create table sign_in_links (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references users (id) on delete cascade,
  link_hash bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint sign_in_links_hash_key unique (link_hash)
);
create index sign_in_links_user on sign_in_links (user_id);
create index sign_in_links_expiry on sign_in_links (expires_at);

alter table sessions drop constraint sessions_method_check;
alter table sessions add constraint sessions_method_check check (method in ('password', 'passkey', 'provider', 'link'));

-- What ends the sessions of a user ends the links that could begin another.
create or replace function end_sessions_of_user() returns trigger language plpgsql as $$
begin
  delete from sessions where user_id = old.id;
  delete from sign_in_links where user_id = old.id;
  return null;
end $$;
create or replace function end_sessions_of_password() returns trigger language plpgsql as $$
begin
  delete from sessions where user_id = old.user_id;
  delete from sign_in_links where user_id = old.user_id;
  return null;
end $$;

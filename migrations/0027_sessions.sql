-- Up Migration

-- People who are signed in by a browser. A session ends when its row is deleted.
create table sessions (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references users (id) on delete cascade,
  -- SHA-256 of the value of the cookie.
  session_hash bytea not null,
  -- How the user has signed in.
  method text not null,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  user_agent text not null default '',
  address text not null default '',
  constraint sessions_session_hash_key unique (session_hash),
  constraint sessions_method_check check (method in ('password', 'passkey', 'provider'))
);
create index sessions_user_id on sessions (user_id);

-- Users who may sign in with a password.
create table user_passwords (
  user_id uuid primary key references users (id) on delete cascade,
  -- Argon2id as a PHC string.
  password_hash text not null,
  changed_at timestamptz not null default now()
);

-- Whoever deactivates a user or changes a password ends the sessions in the same transaction.
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

-- Attempts to sign in, counted for all replicas: written by rate-limiter-flexible, which names the columns.
create table sign_in_attempts (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index sign_in_attempts_expire on sign_in_attempts (expire);

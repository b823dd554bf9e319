-- Up Migration

-- How fast passwords of a login may be tried by browsers that have not signed in with it before. Each attempt raises the level by one,
-- each three minutes lower it by one; above a level, the next attempt must wait. Rows that no longer slow anything down are deleted.
create table sign_in_paces (
  -- SHA-256 of what was typed as a login, in lower case.
  login_hash text primary key,
  level double precision not null,
  -- When the level was that.
  at timestamptz not null,
  -- From when on the next attempt may be made.
  next_at timestamptz not null
);
create index sign_in_paces_at on sign_in_paces (at);

-- Up Migration
-- Without a transaction

-- What ended long ago is deleted, and found without reading the rest.

drop index concurrently if exists api_tokens_ended;

-- Next statement
create index concurrently api_tokens_ended on api_tokens (least(revoked_at, expires_at))
  where least(revoked_at, expires_at) is not null and not is_session;

-- Next statement
drop index concurrently if exists update_approvals_age;

-- Next statement
create index concurrently update_approvals_age on update_approvals (coalesce(expires_at, asked_at));

-- Next statement
drop index concurrently if exists policy_pack_versions_unpublished;

-- Next statement
create index concurrently policy_pack_versions_unpublished on policy_pack_versions (begun_at) where published_at is null;

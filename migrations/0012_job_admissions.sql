-- Up Migration

-- What each queued job may do, as recorded by the API. Workers read it only from here: Redis has only the id.
create table job_admissions (
  id uuid primary key,
  -- `json` instead of `jsonb`, to preserve the order of its fields.
  job json not null,
  -- How the body in Redis is sealed; null for a job without a body.
  body_key bytea,
  body_pieces integer,
  body_bytes bigint,
  expires_at timestamptz not null,
  constraint job_admissions_body_key check (octet_length(body_key) = 32),
  constraint job_admissions_body check (num_nulls(body_key, body_pieces, body_bytes) in (0, 3))
);
create index job_admissions_expires on job_admissions (expires_at);

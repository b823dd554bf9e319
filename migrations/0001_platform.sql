-- The installation itself, objects in the blob store, jobs, and what processes share.

-- Identifies this installation in the blob store, so that two installations that share a bucket do not treat each other's
-- objects as orphans.
create table installation (
  id uuid primary key default gen_random_uuid(),
  is_only boolean not null default true,
  bootstrap_revision bigint,
  -- Signs the addresses under which archives are uploaded and downloaded, because the CLI sends no token there: 244 random bits.
  url_key bytea not null
    default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'),
  -- Which database this is. A database after a restore or a failover to another server may lack acknowledged writes, and differs in one of these.
  -- Null: not recorded yet, or, for the first two, hidden by the server.
  system_id text,
  timeline text,
  -- The ids of the database and of tables, which change when a dump is restored.
  place text,
  -- How often acknowledged writes may have been lost: positions are compared only between two looks with the same number.
  losses integer not null default 0,
  -- When that was last recorded.
  lost_at timestamptz,
  constraint installation_is_only_key unique (is_only),
  constraint installation_is_only_check check (is_only)
);
insert into installation default values;

-- The row is inserted before the upload and deleted after the object, so the store never holds an object without a row.
create table blobs (
  key text primary key,
  stored_bytes bigint,
  -- Data key that encrypts the object; null if it is not encrypted. No foreign key: deleting a stack's keys would scan all blobs,
  -- and document keys are never deleted.
  encryption_key_id uuid,
  -- Since when the blob is unreferenced: set before its upload and when a reference is removed; null while it is referenced.
  -- Only a hint: the references themselves are checked before a blob is pending deletion.
  unreferenced_since timestamptz default now(),
  -- Set by the sweep before it deletes the object. A blob that is pending deletion is never referenced again.
  pending_deletion_since timestamptz,
  -- When to delete the object of a blob that is pending deletion (again).
  delete_at timestamptz,
  -- When the object was deleted. The row stays for a grace period because of late uploads.
  deleted_at timestamptz
);
create index blobs_unreferenced on blobs (unreferenced_since) where unreferenced_since is not null and pending_deletion_since is null;
create index blobs_to_delete on blobs (delete_at) where delete_at is not null;

-- Results of queued jobs, for the calls that wait for them. Deleted after a day.
create table job_results (
  job_id uuid primary key,
  outcome text not null,
  created_at timestamptz not null default now()
);
create index job_results_created on job_results (created_at);

-- What each queued job may do, as recorded by the API. Workers read it only from here: Redis has only the id.
create table job_admissions (
  id uuid primary key,
  -- `json` instead of `jsonb`, to preserve the order of its fields.
  job json not null,
  -- How the body in Redis is encrypted; null for a job without a body.
  body_key bytea,
  body_chunks integer,
  body_bytes bigint,
  expires_at timestamptz not null,
  constraint job_admissions_body_key check (octet_length(body_key) = 32),
  constraint job_admissions_body check (num_nulls(body_key, body_chunks, body_bytes) in (0, 3))
);
create index job_admissions_expires on job_admissions (expires_at);

-- Each sweep runs in one process at a time: the first one that claims it when it is due.
create table maintenance_runs (
  name text primary key,
  claimed_by uuid,
  claimed_until timestamptz,
  last_started_at timestamptz,
  last_ended_at timestamptz,
  -- JSON text: position from which to resume an unfinished run; null if the last run was complete.
  place text,
  -- JSON text: result of the last complete run.
  result text,
  -- The count that the last run reported, as a number of rows or objects.
  last_count bigint,
  -- The last run that has failed, until one succeeds.
  failed_at timestamptz,
  last_error text
);

-- Processes that are alive. Each writes its row from time to time. Logged, as `failed_lookups` is.
create table processes (
  id uuid primary key,
  role text not null,
  version text not null,
  host text not null,
  pid integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  rss_bytes bigint not null,
  -- Share of one core since the last report, and the longest time that its event loop was blocked since, in ms.
  cpu double precision not null,
  loop_ms double precision not null
);

-- Recent failed lookups of tokens and leases by source: a client address or a kind of token. Shared by all replicas.
-- A logged table although its content is worth little after a crash: a power failure soon after creating an unlogged table
-- can leave files that keep Postgres from starting.
create table failed_lookups (
  source text primary key,
  level double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- Recent requests by source: an API token, a user or a client address. Shared by all replicas. Logged for the same reason as
-- failed_lookups.
create table rate_counters (
  source text primary key,
  level double precision not null,
  updated_at timestamptz not null
) with (fillfactor = 50);

-- Locks the object with this id until the end of the transaction, shared with others.
create function lock_shared(id uuid) returns void language sql as $$
  select pg_advisory_xact_lock_shared(hashtextextended(id::text, 46))
$$;

-- The same, alone.
create function lock_exclusive(id uuid) returns void language sql as $$
  select pg_advisory_xact_lock(hashtextextended(id::text, 46))
$$;

create function note_blob_referenced() returns trigger language plpgsql as $$
begin
  update blobs set unreferenced_since = null where key = new.blob_key and unreferenced_since is not null;
  return null;
end $$;

create function note_blob_released() returns trigger language plpgsql as $$
begin
  update blobs set unreferenced_since = clock_timestamp() where key = old.blob_key;
  return null;
end $$;

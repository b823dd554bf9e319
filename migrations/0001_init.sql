-- Up Migration

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
  created_at timestamptz not null default now(),
  constraint users_login_key unique (login)
);

create table memberships (
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  primary key (organization_id, user_id),
  constraint memberships_role_check check (role in ('viewer', 'member', 'admin'))
);
create index memberships_user on memberships (user_id);

-- Only the SHA-256 of a token is stored. Tokens have 256 random bits, so they need no salt.
create table api_tokens (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references users (id) on delete cascade,
  token_hash bytea not null,
  description text not null default '',
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint api_tokens_hash_key unique (token_hash)
);
create index api_tokens_user on api_tokens (user_id);

create table projects (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  created_at timestamptz not null default now(),
  constraint projects_name_key unique (organization_id, name)
);

create table stacks (
  id uuid primary key default gen_random_uuid(),
  project_id uuid not null references projects (id),
  name text not null,
  -- Text of a JSON object with string values, stored as sent, including key order.
  tags text not null default '{}',
  -- JSON text of a remote StackConfig; null for ordinary stacks.
  remote_config text,
  stack_version integer not null default 0,
  -- Head: the latest state, which a running update may have written.
  checkpoint_id uuid,
  -- Update that holds the stack's lock.
  active_update_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint stacks_name_key unique (project_id, name)
);

-- Names that stacks had before a rename. Secrets in old checkpoints are decrypted at the path stored in them.
create table former_stack_names (
  stack_id uuid not null references stacks (id) on delete cascade,
  organization_id uuid not null references organizations (id) on delete cascade,
  project_name text not null,
  stack_name text not null,
  renamed_at timestamptz not null default now(),
  primary key (organization_id, project_name, stack_name, stack_id)
);

create table updates (
  id uuid primary key default gen_random_uuid(),
  stack_id uuid not null references stacks (id) on delete cascade,
  kind text not null,
  dry_run boolean not null default false,
  -- Whether it takes the stack's lock. Everything does except previews of the CLI's dialect.
  exclusive boolean not null,
  status text not null,
  -- Why it ended without being completed by its client: null, 'cancelled' or 'lease-expired'.
  end_reason text,
  -- Stack version of this update; null for previews and before the start.
  stack_version integer,
  -- Stack version it started from.
  base_stack_version integer not null default 0,
  message text not null default '',
  -- JSON texts, as sent.
  environment text not null default '{}',
  config text not null default '{}',
  program text not null default '{}',
  resource_changes text not null default '{}',
  requested_by uuid references users (id) on delete set null,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  lease_hash bytea,
  -- Before the start: deadline for starting. After it: when the lease expires.
  expires_at timestamptz not null,
  -- Raised by every start and takeover. Each write of the execution phase names the epoch in which it was admitted.
  epoch integer not null default 0,
  journal_version integer not null default 0,
  -- State that journal positions refer to; never changes after the start.
  base_checkpoint_id uuid,
  -- State as written or found by this update.
  checkpoint_id uuid,
  -- Highest accepted checkpoint sequence number; 0 before the first.
  checkpoint_sequence integer not null default 0,
  -- Full checkpoints have no sequence number on the wire. Each gets one on arrival, so that a late one cannot overwrite a newer one.
  full_assigned integer not null default 0,
  full_committed integer not null default 0,
  -- Accepted journal entries, and how many of them checkpoint_id includes. Both are reset to 0 when the journal is deleted.
  entry_count integer not null default 0,
  folded_entries integer not null default 0,
  has_tail boolean not null generated always as (entry_count > folded_entries) stored,
  -- Why the journal could not be replayed. Its entries are then kept, and the state stays at checkpoint_id.
  fold_error text,
  constraint updates_kind_check check (kind in ('update', 'preview', 'refresh', 'destroy', 'import', 'rename')),
  constraint updates_status_check check (status in ('not started', 'running', 'succeeded', 'failed', 'cancelled'))
);
create unique index updates_one_active_per_stack on updates (stack_id)
  where exclusive and status in ('not started', 'running');
create unique index updates_stack_version on updates (stack_id, stack_version) where stack_version is not null;
create index updates_by_creation on updates (stack_id, created_at desc, id);
create index updates_with_tail on updates (stack_id) where has_tail;
create index updates_with_journal on updates (ended_at) where entry_count > 0;
create index updates_expiring on updates (expires_at) where status in ('not started', 'running');

-- The row is inserted before the upload and deleted after the object, so the store never holds an object without a row.
create table blobs (
  key text primary key,
  stored_bytes bigint,
  created_at timestamptz not null default now(),
  -- Set by the sweep before it deletes the object. A condemned blob is never referenced again.
  condemned_at timestamptz
);

create table checkpoints (
  id uuid primary key default gen_random_uuid(),
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Null for the state that the stack was created with.
  update_id uuid references updates (id) on delete cascade,
  sequence_number integer,
  -- Hash of the document's bytes as sent by the client.
  sha256 bytea not null,
  size_bytes bigint not null,
  stored_bytes bigint not null,
  codec text not null,
  resource_count integer not null,
  -- The encoded bytes are either inline or in a blob.
  inline_bytes bytea,
  blob_key text references blobs (key),
  created_at timestamptz not null default now(),
  constraint checkpoints_place_check check ((inline_bytes is null) <> (blob_key is null))
);
-- Already compressed, so Postgres should not try.
alter table checkpoints alter column inline_bytes set storage external;
create index checkpoints_update on checkpoints (update_id);
create index checkpoints_blob on checkpoints (blob_key) where blob_key is not null;
create index checkpoints_stack on checkpoints (stack_id);

alter table stacks add constraint stacks_checkpoint_fkey foreign key (checkpoint_id) references checkpoints (id) on delete set null;
alter table stacks add constraint stacks_active_update_fkey foreign key (active_update_id) references updates (id) on delete set null;
create index stacks_checkpoint on stacks (checkpoint_id) where checkpoint_id is not null;
create index stacks_active_update on stacks (active_update_id) where active_update_id is not null;
alter table updates add constraint updates_checkpoint_fkey foreign key (checkpoint_id) references checkpoints (id) on delete set null;
alter table updates add constraint updates_base_checkpoint_fkey foreign key (base_checkpoint_id) references checkpoints (id) on delete set null;
create index updates_checkpoint on updates (checkpoint_id) where checkpoint_id is not null;
create index updates_base_checkpoint on updates (base_checkpoint_id) where base_checkpoint_id is not null;

create table journal_entries (
  update_id uuid not null references updates (id) on delete cascade,
  sequence_id bigint not null,
  entry text not null,
  primary key (update_id, sequence_id)
);

-- Journal snapshots: the replayed state after the first `entries` entries, from which a compaction can resume.
create table journal_fold_points (
  update_id uuid primary key references updates (id) on delete cascade,
  entries integer not null,
  size_bytes bigint not null,
  codec text not null,
  inline_bytes bytea,
  blob_key text references blobs (key),
  constraint journal_fold_points_place_check check ((inline_bytes is null) <> (blob_key is null))
);
create index journal_fold_points_blob on journal_fold_points (blob_key) where blob_key is not null;

create table engine_events (
  update_id uuid not null references updates (id) on delete cascade,
  sequence bigint not null,
  event text not null,
  primary key (update_id, sequence)
);

-- Data keys of stacks, wrapped by the named master key.
create table encryption_keys (
  id uuid primary key default gen_random_uuid(),
  stack_id uuid not null references stacks (id) on delete cascade,
  master_key_id text not null,
  wrapped_key bytea not null,
  created_at timestamptz not null default now(),
  constraint encryption_keys_stack_key unique (stack_id)
);

-- Results of queued jobs, for the calls that wait for them. Deleted after a day.
create table receipts (
  job_id uuid primary key,
  outcome text not null,
  created_at timestamptz not null default now()
);
create index receipts_created on receipts (created_at);

-- Keys that encrypt the secrets of stacks and the documents in the blob store.

-- Master keys by the id that they have in HOLDFAST_MASTER_KEYS.
create table master_keys (
  id text primary key,
  -- The key as its KMS has wrapped it; null for a key that is in the setting itself.
  wrapped_key bytea,
  -- The KMS key that wrapped it, for messages.
  wrapped_by text,
  -- A known text, encrypted with the key: shows at start whether a process has the same key under this id.
  canary bytea not null,
  constraint master_keys_wrapped check ((wrapped_key is null) = (wrapped_by is null))
);

-- Data keys of stacks, wrapped by the named master key. A stack can have several: the one with the highest version encrypts, all can
-- decrypt. Keys without a stack encrypt documents in the blob store.
create table encryption_keys (
  id uuid primary key default gen_random_uuid(),
  stack_id uuid references stacks (id) on delete cascade,
  version integer not null default 1,
  master_key_id text not null,
  wrapped_key bytea not null,
  created_at timestamptz not null default now(),
  constraint encryption_keys_stack_key unique nulls not distinct (stack_id, version)
);

-- Up Migration

-- Master keys by the id that they have in HOLDFAST_MASTER_KEYS.
create table master_keys (
  id text primary key,
  -- The key as its KMS has wrapped it; null for a key that is in the setting itself.
  wrapped_key bytea,
  -- The KMS key that wrapped it, for messages.
  wrapped_by text,
  -- A known text, sealed with the key: shows at start whether a process has the same key under this id.
  canary bytea not null,
  created_at timestamptz not null default now(),
  constraint master_keys_wrapped check ((wrapped_key is null) = (wrapped_by is null))
);

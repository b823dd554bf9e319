-- Addresses that show something of a stack or an organization without a sign-in: badges of a status, and feeds of updates. Only the
-- SHA-256 of the token in an address is stored.
create table embeds (
  id uuid primary key default gen_random_uuid(),
  kind text not null,
  organization_id uuid not null references organizations (id) on delete cascade,
  -- Null: the whole organization.
  stack_id uuid references stacks (id) on delete cascade,
  token_hash bytea not null,
  -- A feed shows what this user may read, and ends with their account.
  created_by uuid references users (id) on delete set null,
  created_at timestamptz not null default now(),
  constraint embeds_token_key unique (token_hash),
  constraint embeds_kind_check check (kind = 'feed' or kind = 'badge' and stack_id is not null)
);
create index embeds_owner on embeds (organization_id, stack_id, created_at);
create index embeds_stack on embeds (stack_id) where stack_id is not null;
create index embeds_creator on embeds (created_by) where created_by is not null;

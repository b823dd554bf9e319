-- The break-glass bundle: where it is, and what of each stack it has.

create table bundles (
  is_only boolean primary key default true,
  place text not null,
  -- Of the passphrase, as the CLI writes it, with a check: `v1:SALT:CHECK`.
  salt text not null,
  constraint bundles_only_check check (is_only)
);

-- By the place in the bundle. No foreign key: a row outlives its stack until the files are removed.
create table bundled_stacks (
  organization text not null,
  project text not null,
  stack text not null,
  stack_id uuid not null,
  -- The version that the bundle has; null before the first.
  stack_version integer,
  -- Of the row in stack_changes, as it was before that version was read; null: written again.
  changed_at timestamptz,
  tags text,
  -- The newest entry in the history there.
  entry text,
  -- Of the file of the state there, in hex.
  sha256 text,
  -- Marks of writes that may still become visible: of workers that were killed, or are slow.
  attempts text[] not null default '{}',
  attempted_at timestamptz,
  checked_at timestamptz,
  -- Since when a change waits that could not be written.
  behind_since timestamptz,
  failures integer not null default 0,
  postponed_until timestamptz,
  error text,
  primary key (organization, project, stack)
);
create index bundled_stacks_stack on bundled_stacks (stack_id);

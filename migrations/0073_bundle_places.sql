-- What the bundle had of each stack at its location before this one: settings may go back, and processes with both may run side by side.
-- No foreign keys, as in bundled_stacks.
create table left_bundled_stacks (
  organization_id uuid not null,
  place text not null,
  organization text not null,
  project text not null,
  stack text not null,
  stack_id uuid not null,
  stack_version integer,
  checkpoint_id uuid,
  changed_at timestamptz,
  tags text,
  entry text,
  sha256 text,
  attempts text[] not null,
  attempted_at timestamptz,
  primary key (organization_id, place, organization, project, stack)
);

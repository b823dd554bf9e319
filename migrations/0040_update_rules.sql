-- Up Migration

-- Rules that organizations set for the updates of their stacks. What a kind means, and its settings, are in rule-kinds.ts.
create table update_rules (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  kind text not null,
  -- Tells rules of one kind for the same stacks apart. Empty for kinds of which only one can be there.
  slot text not null default '',
  -- Which stacks: those that have all of the names and the tag that are given. Names, not ids: who renames a stack, or deletes and
  -- creates it again, does not change what is decided about the name.
  project text,
  stack text,
  tag_name text,
  tag_value text,
  settings jsonb not null,
  note text not null default '',
  set_at timestamptz not null default clock_timestamp(),
  -- Null: an operator.
  set_by uuid references users (id) on delete set null,
  constraint update_rules_stack_check check (stack is null or project is not null and tag_name is null),
  constraint update_rules_tag_check check ((tag_name is null) = (tag_value is null))
);
create unique index update_rules_key on update_rules (organization_id, kind, slot, coalesce(project, ''), coalesce(stack, ''),
  coalesce(tag_name, ''), coalesce(tag_value, ''));
create index update_rules_set_by on update_rules (set_by) where set_by is not null;

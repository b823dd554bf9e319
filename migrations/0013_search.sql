-- The index of resources and changes, used to search stacks.

-- The words of a resource's type and name, in lower case: whole, and their parts where a capital letter begins another. Array functions
-- and not a text search parser, which would take types for paths and hosts. Only letters of ASCII change their case, so that no locale
-- matters.
create function resource_words(type text, name text) returns tsvector language sql immutable parallel safe cost 1000 as $$
  select array_to_tsvector(array_remove(string_to_array(regexp_replace(
    lower((t || ' ' || regexp_replace(t, '([a-z0-9])([A-Z])', '\1 \2', 'g')) collate "C"),
    '[\x01-\x2f\x3a-\x60\x7b-\x7f]+', ' ', 'g'), ' '), ''))
  from (values (left(type, 500) || ' ' || left(name, 500))) as v (t)
$$;

-- Stacks whose head or versions the index does not show yet. Apart from the index, so that a commit never waits for a worker that writes
-- the index. No foreign key: the worker that finds a row of a deleted stack removes it.
create table state_index_due (
  stack_id uuid primary key,
  noted_at timestamptz not null default clock_timestamp(),
  -- One of many whose index is to be built again: indexed at a set rate.
  is_backlog boolean not null default false,
  -- The worker that has claimed it, and until when.
  claim uuid,
  claimed_until timestamptz,
  -- Whether anything was committed since it was claimed.
  is_noted_again boolean not null default false,
  failures integer not null default 0
);
create index state_index_due_order on state_index_due (is_backlog, noted_at);

create table state_indexes (
  stack_id uuid primary key references stacks (id) on delete cascade,
  -- Raised by every change: a worker writes the index only over the edition that it has read.
  edition bigint not null default 0,
  -- The version and the state that the rows show; null before the first time.
  version integer,
  checkpoint_id uuid,
  -- Whether the version had ended: its changes are known then.
  is_ended boolean not null default false,
  -- Changes are known for versions above this one.
  known_from integer,
  resource_count integer not null default 0,
  -- Resources that are too large to be indexed.
  skipped integer not null default 0,
  indexed_at timestamptz
);

create table stack_resources (
  stack_id uuid not null references state_indexes (stack_id) on delete cascade,
  -- Hash of the identity of a resource within its stack, independent of the stack's name.
  key text collate "C" not null,
  -- Hash of the resource as it is in the document.
  digest text collate "C" not null,
  urn text not null,
  type text not null,
  name text not null,
  -- Order of lists: type and name, cut.
  place text collate "C" not null,
  parent text collate "C",
  provider text collate "C",
  -- Of resources that are providers.
  provider_version text,
  dependencies text[] not null,
  is_custom boolean not null,
  is_external boolean not null,
  is_protected boolean not null,
  deletes_first boolean not null,
  -- Replaced, and still to be deleted.
  is_deleted boolean not null,
  inputs_hash text,
  outputs_hash text,
  -- The stack that a stack reference reads: organization/project/stack.
  reads text,
  primary key (stack_id, key)
);
create index stack_resources_place on stack_resources (stack_id, place, key);
create index stack_resources_parent on stack_resources (stack_id, parent, place, key);
create index stack_resources_reads on stack_resources (reads) where reads is not null;
create index stack_resources_words on stack_resources using gin (resource_words(type, name));
-- Types and names are up to 2,000 characters long, more than an entry of an index may be.
create index stack_resources_type on stack_resources (left(type, 200) text_pattern_ops, stack_id);
create index stack_resources_name on stack_resources (left(name, 200) text_pattern_ops, stack_id);
create index stack_resources_protected on stack_resources (stack_id) where is_protected;
create index stack_resources_providers on stack_resources (stack_id) where type like 'pulumi:providers:%';
create index stack_resources_provider on stack_resources (stack_id, provider) where provider is not null;
-- The stack references of a stack, without its other resources.
create index stack_resources_reads_of_stack on stack_resources (stack_id, reads) where reads is not null;

create table version_changes (
  stack_id uuid not null references state_indexes (stack_id) on delete cascade,
  version integer not null,
  created integer not null,
  updated integer not null,
  replaced integer not null,
  deleted integer not null,
  resource_count integer not null,
  primary key (stack_id, version)
);

create table resource_changes (
  stack_id uuid not null,
  version integer not null,
  key text collate "C" not null,
  urn text not null,
  type text not null,
  change text not null,
  -- Names of changed properties, the first ones; null if they were not compared.
  paths text[],
  path_count integer not null,
  primary key (stack_id, version, key),
  constraint resource_changes_version_fkey foreign key (stack_id, version) references version_changes (stack_id, version) on delete cascade,
  constraint resource_changes_change_check check (change in ('created', 'updated', 'replaced', 'deleted'))
);
create index resource_changes_key on resource_changes (stack_id, key, version desc);

-- No function that both triggers call: these run with each checkpoint, and a function in SQL is planned each time. The row of a stack
-- that is being indexed is locked for moments only.
create function note_head() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again);
  return null;
end $$;
create trigger stacks_head_moved after update of checkpoint_id on stacks
  for each row when (old.checkpoint_id is distinct from new.checkpoint_id and new.checkpoint_id is not null)
  execute function note_head();

create function note_version() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.stack_id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again);
  return null;
end $$;
create trigger updates_version_ended after update of status on updates
  for each row when (old.status = 'running' and new.status not in ('not started', 'running') and new.exclusive and not new.dry_run)
  execute function note_version();
create trigger updates_version_recorded after insert on updates
  for each row when (new.stack_version is not null and new.status not in ('not started', 'running'))
  execute function note_version();

create function notify_live_of_index() returns trigger language plpgsql as $$
begin
  perform notify_live('index.changed',
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id), new.stack_id, null);
  return null;
end $$;
create trigger state_indexes_live after update of edition on state_indexes
  for each row when (old.edition <> new.edition) execute function notify_live_of_index();

-- Policy packs, and the stacks whose updates must run them.

-- Policy packs of an organization, which `pulumi policy publish` uploads.
create table policy_packs (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  -- Number of the version that was begun last.
  last_version integer not null default 0,
  constraint policy_packs_name_key unique (organization_id, name)
);

-- A version is begun, gets its archive, and is then published. The row of a removed one stays without its archive: clients
-- that have installed it would not fetch another archive under the same tag.
create table policy_pack_versions (
  id uuid primary key default gen_random_uuid(),
  pack_id uuid not null references policy_packs (id) on delete cascade,
  version integer not null,
  version_tag text not null,
  display_name text not null,
  -- JSON text of the description that the client sent: policies with the schemas of their configuration, and others.
  description text not null,
  begun_by uuid references users (id) on delete set null,
  begun_at timestamptz not null default now(),
  published_at timestamptz,
  removed_at timestamptz,
  -- Hash, size and location of the archive; null until it was uploaded, and after the removal.
  sha256 bytea,
  size_bytes bigint,
  stored_bytes bigint,
  codec text,
  inline_bytes bytea,
  blob_key text references blobs (key),
  checked_at timestamptz not null default now(),
  damaged_at timestamptz,
  constraint policy_pack_versions_number_key unique (pack_id, version),
  constraint policy_pack_versions_tag_key unique (pack_id, version_tag),
  constraint policy_pack_versions_place_check check (
    case when sha256 is null then inline_bytes is null and blob_key is null
    else (inline_bytes is null) <> (blob_key is null) end
  ),
  constraint policy_pack_versions_published_check check (
    published_at is null or (sha256 is null) = (removed_at is not null)
  )
);
-- Already compressed, so Postgres should not try.
alter table policy_pack_versions alter column inline_bytes set storage external;
create index policy_pack_versions_blob on policy_pack_versions (blob_key) where blob_key is not null;
create index policy_pack_versions_checked on policy_pack_versions (checked_at) where sha256 is not null;
create index policy_pack_versions_user on policy_pack_versions (begun_by) where begun_by is not null;
create index policy_pack_versions_unpublished on policy_pack_versions (begun_at) where published_at is null;

create trigger policy_pack_versions_blob_referenced after insert on policy_pack_versions
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger policy_pack_versions_blob_replaced after update of blob_key on policy_pack_versions
  for each row when (new.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_referenced();
create trigger policy_pack_versions_blob_dropped after update of blob_key on policy_pack_versions
  for each row when (old.blob_key is not null and new.blob_key is distinct from old.blob_key)
  execute function note_blob_released();
create trigger policy_pack_versions_blob_released after delete on policy_pack_versions
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- Policy groups: the policy packs that updates of stacks must run. The default group of an organization applies to all stacks that are
-- in no other group.
create table policy_groups (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  is_default boolean not null default false,
  constraint policy_groups_name_key unique (organization_id, name)
);
create unique index policy_groups_default on policy_groups (organization_id) where is_default;

create table policy_group_stacks (
  group_id uuid not null references policy_groups (id) on delete cascade,
  stack_id uuid not null references stacks (id) on delete cascade,
  primary key (group_id, stack_id)
);
create index policy_group_stacks_stack on policy_group_stacks (stack_id);

create table policy_group_packs (
  group_id uuid not null references policy_groups (id) on delete cascade,
  pack_id uuid not null references policy_packs (id) on delete cascade,
  version_id uuid not null references policy_pack_versions (id),
  -- JSON text: policies with their configuration.
  config text not null default '{}',
  primary key (group_id, pack_id)
);
create index policy_group_packs_pack on policy_group_packs (pack_id);
create index policy_group_packs_version on policy_group_packs (version_id);

-- Every organization has a default group.
create function add_default_policy_group() returns trigger language plpgsql as $$
begin
  insert into policy_groups (organization_id, name, is_default) values (new.id, 'default-policy-group', true);
  return null;
end $$;
create trigger organizations_default_policy_group after insert on organizations
  for each row execute function add_default_policy_group();

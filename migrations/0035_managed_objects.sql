-- Objects of organizations that a configuration under version control declares.
create table managed_objects (
  organization_id uuid not null references organizations (id) on delete cascade,
  kind text not null,
  -- As the configuration names it.
  name text not null,
  -- As the API names it in its paths: a name or an id.
  object text not null,
  labels jsonb not null,
  -- A salted hash of the secret that was set last, so that a change of it is noticed.
  secret_digest text,
  applied_at timestamptz not null default now(),
  -- Login, as in the audit log.
  applied_by text not null,
  primary key (organization_id, kind, name)
);
create index managed_objects_object on managed_objects (organization_id, kind, object);

-- The runs of `holdfast import` that changed or compared something, for the pages of an organization.

create table import_runs (
  id uuid primary key default gen_random_uuid(),
  number bigint generated always as identity,
  organization_id uuid not null references organizations (id) on delete cascade,
  -- 'import', 'verify' or 'rollback'.
  kind text not null,
  -- The address of the source, without secrets.
  source text not null,
  -- The system user who ran the command.
  run_by text not null,
  started_at timestamptz not null default clock_timestamp(),
  -- Null: it runs, or was interrupted.
  ended_at timestamptz,
  constraint import_runs_kind_check check (kind in ('import', 'verify', 'rollback'))
);
create index import_runs_newest on import_runs (organization_id, number desc);

-- What a run has done with each stack of the source, except those of which all was here.
create table import_run_stacks (
  run_id uuid not null references import_runs (id) on delete cascade,
  -- In the source: project/stack.
  name text collate "C" not null,
  -- Here; null: not known.
  project text,
  stack text not null,
  -- That came, are equal, or were deleted.
  versions integer not null,
  previews integer not null,
  -- Whose keys encrypt its secrets in the source; null: none, or not read.
  secrets_provider text,
  -- Why the CLI refuses its newest state; null: it does not.
  quarantine text,
  -- JSON list of texts: what was left out, differs, or was kept, and why.
  notes text not null,
  has_notes boolean generated always as (notes <> '[]') stored,
  primary key (run_id, name)
);

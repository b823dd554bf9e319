-- Up Migration

-- Secrets that an update has read so far. When it ends, the row becomes one event of the audit log.
create table audit_secret_reads (
  update_id uuid primary key,
  organization text not null,
  object text not null,
  -- JSON text: who reads.
  source text not null,
  calls integer not null,
  read_values integer not null,
  names text[] not null
);

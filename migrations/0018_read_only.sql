-- The read-only mode of the installation: since when, and why. Null: it accepts all writes.
alter table installation
  add column read_only_since timestamptz,
  add column read_only_reason text,
  add constraint installation_read_only_check check ((read_only_since is null) = (read_only_reason is null));

-- A batch that a receiver refuses delays only its organization: failures since its last accepted batch, and when the next attempt may be made.
alter table audit_chains
  add column send_failures integer not null default 0,
  add column send_after timestamptz not null default '-infinity';

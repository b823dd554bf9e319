-- Up Migration

-- The last batch whose events a receiver has accepted over HTTPS.
alter table audit_chains add column sent_batch bigint not null default 0;

-- Failed attempts since the last one that was accepted, and when the next one may be made.
create table audit_sending (
  only_row boolean primary key default true,
  failures integer not null default 0,
  next_at timestamptz not null default now(),
  constraint audit_sending_only_row check (only_row)
);
insert into audit_sending default values;

-- Which site this is. Each promotion raises the term, and writes it with a new id to the blob stores: a database with a lower term belongs to
-- a site that was replaced, and refuses writes. Term 0: no site was promoted yet.
alter table installation
  add column site_term integer not null default 0,
  add column site_id uuid,
  add column fenced_since timestamptz;
-- Blobs that one of two stores may lack, or that must still be deleted there.
create table blob_copies_due (
  key text primary key,
  is_deletion boolean not null,
  bytes bigint not null,
  noted_at timestamptz not null default clock_timestamp(),
  -- Later than noted_at after a failure.
  try_at timestamptz not null default clock_timestamp()
);
create index blob_copies_due_try_at on blob_copies_due (try_at);

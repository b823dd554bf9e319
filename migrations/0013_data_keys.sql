-- Up Migration

-- A stack can have several data keys. The one with the highest version encrypts; all can decrypt. Keys without a stack
-- seal documents in the blob store.
alter table encryption_keys alter column stack_id drop not null;
alter table encryption_keys add column version integer not null default 1;
alter table encryption_keys drop constraint encryption_keys_stack_key;
-- Keeps its name, because the previous release refers to it when it inserts.
alter table encryption_keys
  add constraint encryption_keys_stack_key unique nulls not distinct (stack_id, version);

-- Data key that seals the object; null if it is not sealed. No foreign key: deleting a stack's keys would scan all blobs,
-- and document keys are never deleted.
alter table blobs add column sealing_key_id uuid;

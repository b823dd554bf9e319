-- Up Migration

-- A stack may have several data keys: the one with the highest version encrypts, all decrypt. Keys without a stack seal
-- documents in the blob store.
alter table encryption_keys alter column stack_id drop not null;
alter table encryption_keys add column version integer not null default 1;
alter table encryption_keys drop constraint encryption_keys_stack_key;
-- Under the same name, by which the release before this one inserts.
alter table encryption_keys
  add constraint encryption_keys_stack_key unique nulls not distinct (stack_id, version);

-- The data key that the object is sealed by; null: it is not sealed. No foreign key: each deletion of a stack's keys would look
-- through all blobs, and keys of documents are never deleted.
alter table blobs add column sealing_key_id uuid;

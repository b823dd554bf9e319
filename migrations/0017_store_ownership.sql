-- Which database owns the blob store: the store has the nonce, too, and both get a new one every minute. A copy of this database has an older
-- nonce, and deletes nothing. Null: it has owned no store yet.
alter table installation
  add column store_nonce uuid,
  add column store_nonce_before uuid,
  add column store_nonce_at timestamptz;

-- The tags of the stack, and the wait in seconds, with which the call of a queue entry has arrived.
alter table update_queue_waiters add column tags text, add column wait_seconds integer;
-- The tags of the stack when the call that created the update arrived, if they were changed while it waited: its client knows these.
alter table updates add column tags_at_arrival text;

-- Each process lists its entries.
create index update_queue_waiters_process on update_queue_waiters (process_id);
drop index update_queue_waiters_superseded;

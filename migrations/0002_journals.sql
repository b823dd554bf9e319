-- Up Migration

-- The counters of a journal change with every batch. In the update's row, every batch rewrote a row with eight indexes, and
-- events of the same update waited for it. A row exists as long as the journal does.
create table journals (
  update_id uuid primary key references updates (id) on delete cascade,
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Accepted entries, and how many of them the update's checkpoint includes.
  entry_count integer not null default 0,
  folded_entries integer not null default 0,
  -- Why the journal could not be replayed. Its entries are then kept, and the state stays at the update's checkpoint.
  fold_error text
) with (fillfactor = 50);
-- No index may include a counter, because every batch changes them.
create index journals_stack on journals (stack_id);

insert into journals (update_id, stack_id, entry_count, folded_entries, fold_error)
select id, stack_id, entry_count, folded_entries, fold_error from updates
where entry_count > 0 or (journal_version = 1 and status in ('not started', 'running'));

drop index updates_with_tail;
drop index updates_with_journal;
alter table updates drop column has_tail;
alter table updates drop column entry_count, drop column folded_entries, drop column fold_error;

-- Stacks for whose index a call waits are indexed first. Otherwise, many saved states of one organization would delay deletions in others.
alter table state_index_due add column is_awaited boolean not null default false;
drop index state_index_due_order;
create index state_index_due_order on state_index_due (is_awaited desc, is_backlog, noted_at);

-- An import has created the stack, or brought the state that it has before its first version.

alter table stacks add column begun_by_import boolean not null default false;

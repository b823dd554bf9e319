-- An import of several transactions has begun and not ended: the stack has an old state until then, which nobody may update.

alter table stacks add column import_unfinished boolean not null default false;

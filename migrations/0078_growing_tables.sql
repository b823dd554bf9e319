-- What grows for years is not read whole.
-- Without a transaction

-- The chunks of one stack in their order.
drop index concurrently if exists version_chunks_stack;

-- Next statement
create index concurrently version_chunks_stack on version_chunks (stack_id, id);

-- Next statement
-- For the foreign keys: the others of these columns are conditional.
drop index concurrently if exists stacks_project;

-- Next statement
create index concurrently stacks_project on stacks (project_id);

-- Next statement
drop index concurrently if exists api_tokens_listed_in;

-- Next statement
create index concurrently api_tokens_listed_in on api_tokens (listed_in) where listed_in is not null;

-- Next statement
drop index concurrently if exists users_site_admin_listed_in;

-- Next statement
create index concurrently users_site_admin_listed_in on users (site_admin_listed_in) where site_admin_listed_in is not null;

-- Next statement
drop index concurrently if exists users_provisioned_by;

-- Next statement
create index concurrently users_provisioned_by on users (provisioned_by) where provisioned_by is not null;

-- Without a transaction

-- Grants of an organization, page by page.
drop index concurrently if exists grants_page;

-- Next statement
create index concurrently grants_page on grants (organization_id, created_at, id);

-- Next statement
-- Grants of a role: when it changes or goes.
drop index concurrently if exists grants_role;

-- Next statement
create index concurrently grants_role on grants (role_id) where role_id is not null;

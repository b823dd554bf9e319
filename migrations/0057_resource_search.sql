-- Without a transaction

-- The words of a resource's type and name, in lower case: whole, and their parts where a capital letter begins another. Array functions
-- and not a text search parser, which would take types for paths and hosts. Only letters of ASCII change their case, so that no locale
-- matters.
create or replace function resource_words(type text, name text) returns tsvector language sql immutable parallel safe cost 1000 as $$
  select array_to_tsvector(array_remove(string_to_array(regexp_replace(
    lower((t || ' ' || regexp_replace(t, '([a-z0-9])([A-Z])', '\1 \2', 'g')) collate "C"),
    '[\x01-\x2f\x3a-\x60\x7b-\x7f]+', ' ', 'g'), ' '), ''))
  from (values (left(type, 500) || ' ' || left(name, 500))) as v (t)
$$;

-- Next statement
drop index concurrently if exists stack_resources_words;

-- Next statement
create index concurrently stack_resources_words on stack_resources using gin (resource_words(type, name));

-- Next statement
drop index concurrently if exists stack_resources_type;

-- Next statement
-- Types and names are up to 2,000 characters long, more than an entry of an index may be.
create index concurrently stack_resources_type on stack_resources (left(type, 200) text_pattern_ops, stack_id);

-- Next statement
drop index concurrently if exists stack_resources_name;

-- Next statement
create index concurrently stack_resources_name on stack_resources (left(name, 200) text_pattern_ops, stack_id);

-- Next statement
drop index concurrently if exists stack_resources_protected;

-- Next statement
create index concurrently stack_resources_protected on stack_resources (stack_id) where is_protected;

-- Next statement
drop index concurrently if exists stack_resources_providers;

-- Next statement
create index concurrently stack_resources_providers on stack_resources (stack_id) where type like 'pulumi:providers:%';

-- Next statement
drop index concurrently if exists stack_resources_provider;

-- Next statement
create index concurrently stack_resources_provider on stack_resources (stack_id, provider) where provider is not null;

-- Next statement
analyze stack_resources;

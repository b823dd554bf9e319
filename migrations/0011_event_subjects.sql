-- Up Migration

-- What readers of a page need to know of an event is written beside it when it comes, so that no reader has to take events apart:
-- the name of its payload, empty when the event says its type itself, and the resource that it is about.
alter table engine_events add column type text not null default '', add column urn text;

create function pg_temp.payload_of(event text) returns text language plpgsql as $$
begin
  return (
    select case when bool_or(name = 'type') then '' else
      coalesce((array_agg(name order by place) filter (where name not in ('sequence', 'timestamp')))[1], '') end
    from json_object_keys(event::json) with ordinality as members (name, place));
exception when others then
  -- Nesting that is too deep for Postgres.
  return '';
end $$;

create function pg_temp.urn_of(event text) returns text language plpgsql as $$
begin
  return (
    select coalesce(value #>> '{metadata,urn}', value ->> 'urn', value ->> 'resourceUrn')
    from json_each(event::json) with ordinality as members (name, value, place)
    where json_typeof(value) = 'object'
      and coalesce(value #>> '{metadata,urn}', value ->> 'urn', value ->> 'resourceUrn') is not null
    order by place limit 1);
exception when others then
  return null;
end $$;

-- Escapes of what is no text to Postgres, wherever they stand, would keep it from reading the event.
create function pg_temp.readable(event text) returns text language sql as $$
  select regexp_replace(event, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g')
$$;

update engine_events set type = pg_temp.payload_of(pg_temp.readable(event)), urn = pg_temp.urn_of(pg_temp.readable(event));

-- Up Migration

-- What readers of an event page need is stored beside each event, so that they need not parse it: the name of its payload
-- (empty if the event itself contains its type) and the resource that it concerns.
alter table engine_events add column type text not null default '', add column urn text;

create function pg_temp.payload_of(event text) returns text language plpgsql as $$
begin
  return (
    select case when bool_or(name = 'type') then '' else
      coalesce((array_agg(name order by place) filter (where name not in ('sequence', 'timestamp')))[1], '') end
    from json_object_keys(event::json) with ordinality as members (name, place));
exception when others then
  -- Nested too deeply for Postgres.
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

-- Replaces escapes of characters that Postgres cannot store as text; otherwise it could not parse the event.
create function pg_temp.readable(event text) returns text language sql as $$
  select regexp_replace(event, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g')
$$;

update engine_events set type = pg_temp.payload_of(pg_temp.readable(event)), urn = pg_temp.urn_of(pg_temp.readable(event));

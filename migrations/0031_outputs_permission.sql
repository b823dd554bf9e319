-- Up Migration

-- The permission outputs (64): the outputs of a stack and nothing else; with decrypt (16) also the secret ones. The release before
-- reads from this function what lists show (1) and which leases go on (2, 4), and these bits are as they were.
create or replace function effective_permissions(facts jsonb, organization uuid, project text, stack text) returns integer
language plpgsql stable as $$
declare
  allowed integer;
  denied integer;
  by_token integer;
  scoped integer;
begin
  if facts is null then return 0; end if;
  select coalesce(bit_or(g.permissions) filter (where not g.deny and not g.token), 0),
    coalesce(bit_or(g.permissions) filter (where g.deny), 0),
    coalesce(bit_or(g.permissions) filter (where not g.deny and g.token), 0)
  into allowed, denied, by_token
  from jsonb_to_recordset(facts -> 'grants') as g (
    deny boolean, token boolean, permissions integer, project text, stack text, "tagName" text, "tagValue" text)
  where name_matches(g.project, $3) and name_matches(g.stack, $4)
    and (g."tagName" is null or exists (
      select 1 from stack_listings l
      where l.organization_id = organization and l.tag_name = g."tagName" and l.project_name = $3 and l.stack_name = $4
        and (g."tagValue" is null or l.tag_value = g."tagValue")));
  allowed := (allowed | (facts ->> 'base')::integer) & ~denied;
  -- Who may read a stack may read its outputs (64), so a token may be limited to them.
  if allowed & 1 = 1 then allowed := allowed | (64 & ~denied); end if;
  if jsonb_typeof(facts -> 'scopes') = 'array' then
    select coalesce(bit_or(s.permissions), 0) into scoped
    from jsonb_to_recordset(facts -> 'scopes') as s (permissions integer, project text, stack text)
    where name_matches(s.project, $3) and name_matches(s.stack, $4);
    allowed := allowed & (scoped | by_token);
  end if;
  -- A permission without those that it needs is none.
  if allowed & 1 = 0 then allowed := case when allowed & 64 = 64 then allowed & 80 else 0 end; end if;
  if allowed & 2 = 0 then allowed := allowed & ~12; end if;
  if allowed & 4 = 0 then allowed := allowed & ~8; end if;
  return allowed;
end $$;

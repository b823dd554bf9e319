-- Everybody behind the call that gave an issuer its keys: a token of an organization or of a CI run has no user. No release has the former column.
alter table trusted_issuers alter column keys_by type uuid[] using array[keys_by];

-- As before, with all of them.
create or replace function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by,
      case when t.previous_until > clock_timestamp() then t.previous_rotated_by end]
    || (select i.keys_by from trust_policies p join trusted_issuers i on i.id = p.issuer_id where p.id = t.policy_id)
    || case when t.policy_id is null then '{}' else array(
    select u.id from memberships m join users u on u.id = m.user_id
    where m.organization_id in (
        select t.organization_id
        union all select o.id from organizations o where t.kind = 'personal' and o.name in (
          select s.organization from jsonb_to_recordset(t.scopes) as s (organization text)))
      and (lower(u.login) in (lower(t.claims ->> 'actor'), lower(t.claims ->> 'user_login'))
        or u.email <> '' and lower(u.email) = lower(t.claims ->> 'user_email'))) end, null)
  from (values (of_token)) one (id) left join api_tokens t on t.id = one.id
$$;

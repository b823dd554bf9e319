-- Up Migration

-- Who has replaced the secret of the token last, and so knows it; null: nobody has, or an operator. No foreign key: users that are gone
-- do not matter.
alter table api_tokens add column rotated_by uuid;

-- The users who act by a token, as far as that is known: its user, who has made it and who has rotated it; for a token of a CI run, the
-- member of its organization whom the id token names as who has started the run, as GitHub (actor) and GitLab (user_login, user_email) do.
create function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by] || case when t.policy_id is null then '{}' else array(
    select u.id from memberships m join users u on u.id = m.user_id
    where m.organization_id = t.organization_id
      and (lower(u.login) in (lower(t.claims ->> 'actor'), lower(t.claims ->> 'user_login'))
        or u.email <> '' and lower(u.email) = lower(t.claims ->> 'user_email'))) end, null)
  from (values (of_token)) one (id) left join api_tokens t on t.id = one.id
$$;

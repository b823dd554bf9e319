-- What a member has by groups of the provider, or by a grant to a token, when the membership ends and begins again.

-- Whether groups of the provider have given the role, or added the member to the team: they may take it away after the return.
alter table scim_users add column suspended_is_mapped boolean not null default false;
alter table scim_waiting_members add column is_mapped boolean not null default false;

-- As before, with the marks of groups on teams. The role may be another than the one before.
create or replace function resume_member() returns trigger language plpgsql as $$
begin
  with waiting as (
    delete from scim_waiting_members w using teams e
    where e.id = w.team_id and e.organization_id = new.organization_id and w.user_id = new.user_id
    returning w.team_id, w.user_id, w.is_admin, w.is_mapped
  ), added as (
    insert into team_members (team_id, user_id, is_admin) select team_id, user_id, is_admin from waiting on conflict do nothing
    returning team_id
  )
  insert into mapped_team_members (team_id, user_id)
  select w.team_id, w.user_id from waiting w join added a on a.team_id = w.team_id where w.is_mapped on conflict do nothing;
  update scim_users set suspended_role = null, suspended_is_mapped = false
  where organization_id = new.organization_id and user_id = new.user_id and suspended_role is not null;
  return null;
end $$;

-- As before, with the grants to tokens of the user.
create or replace function forget_member() returns trigger language plpgsql as $$
begin
  delete from grants where user_id = old.user_id and organization_id = old.organization_id;
  delete from grants where organization_id = old.organization_id
    and token_id in (select id from api_tokens where user_id = old.user_id and kind = 'personal');
  delete from team_members where user_id = old.user_id
    and team_id in (select id from teams where organization_id = old.organization_id);
  return null;
end $$;

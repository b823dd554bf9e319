-- Filters of pages that members save by name.
create table saved_views (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  name text not null,
  -- All members see it, or only its author.
  is_shared boolean not null,
  page text not null,
  -- The parameters of the page's URL.
  search jsonb not null,
  created_at timestamptz not null default now(),
  constraint saved_views_name_key unique (organization_id, user_id, name)
);
create index saved_views_user on saved_views (user_id);

-- Views in a member's side bar.
create table saved_view_pins (
  view_id uuid not null references saved_views (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  primary key (view_id, user_id)
);
create index saved_view_pins_user on saved_view_pins (user_id);

-- Shared views of a former member stay, until an admin deletes them.
create function forget_views() returns trigger language plpgsql as $$
begin
  delete from saved_view_pins p using saved_views v
  where p.user_id = old.user_id and v.id = p.view_id and v.organization_id = old.organization_id;
  delete from saved_views where organization_id = old.organization_id and user_id = old.user_id and not is_shared;
  return null;
end $$;
create trigger memberships_forget_views after delete on memberships for each row execute function forget_views();

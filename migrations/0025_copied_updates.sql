-- Updates and previews that `holdfast import` copies.

-- The previews that have come, so that none comes again after its deletion.
create table imported_previews (
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Its id in the source.
  entry text not null,
  -- Null since it was deleted here.
  update_id uuid references updates (id) on delete set null,
  primary key (stack_id, entry)
);
create unique index imported_previews_update on imported_previews (update_id) where update_id is not null;

-- They have ended elsewhere, long ago: webhooks are not notified of them. Otherwise as in migration 11.

create or replace function notify_of_update() returns trigger language plpgsql as $$
declare
  notified_organization uuid := coalesce(new.organization_id,
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id));
  noun text := case when new.dry_run or new.kind = 'preview' then 'preview' else new.kind end;
begin
  if not exists (select 1 from webhooks where organization_id = notified_organization) then return null; end if;
  if tg_op = 'INSERT' and (exists (select 1 from imported_versions i where i.update_id = new.id)
    or exists (select 1 from imported_previews i where i.update_id = new.id)) then return null; end if;
  if new.status = 'running' then
    perform notify_webhooks(notified_organization, new.stack_id, new.id,
      case noun when 'preview' then 'preview_started' else 'update_started' end, 'holdfast', '{}');
  else
    perform notify_webhooks(notified_organization, new.stack_id, new.id,
      noun || case new.status when 'succeeded' then '_succeeded' else '_failed' end, 'stacks', '{}');
  end if;
  return null;
end $$;

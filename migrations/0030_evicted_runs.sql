-- A run that a user removes from the queue is evicted: {evictedBy, reason} in superseded_by.
alter function note_sent_away() rename to note_queue_loss;
alter trigger update_queue_waiters_sent_away on update_queue_waiters rename to update_queue_waiters_lost;
create or replace function note_queue_loss() returns trigger language plpgsql as $$
begin
  insert into refused_runs (organization_id, stack_id, reason, kind, message, requested_by, commit_id, branch, ci_url, waited_ms)
  select p.organization_id, new.stack_id, case when new.superseded_by ? 'evictedBy' then 'evicted' else 'superseded' end,
    new.shown ->> 'kind',
    case when new.superseded_by ? 'evictedBy'
      then left(concat_ws(': ', 'Removed from the queue by ' || (new.superseded_by ->> 'evictedBy'), nullif(new.superseded_by ->> 'reason', '')), 1000)
      else left('Superseded by commit ' || coalesce(new.superseded_by ->> 'commit', '') || coalesce(' (' || (new.superseded_by ->> 'url') || ')', ''), 1000) end,
    coalesce(a.login, t.kind || ':' || t.name), coalesce(new.shown ->> 'commit', new.run ->> 'commit'), new.shown ->> 'branch',
    coalesce(new.shown ->> 'url', new.run ->> 'url'), greatest(0, floor(1000 * extract(epoch from clock_timestamp() - new.arrived_at)))
  from stacks s join projects p on p.id = s.project_id left join api_tokens t on t.id = new.token_id left join users a on a.id = t.user_id
  where s.id = new.stack_id;
  return null;
end $$;
update refused_runs set reason = 'evicted', message = regexp_replace(message, '^Sent away by', 'Removed from the queue by') where reason = 'sent-away';

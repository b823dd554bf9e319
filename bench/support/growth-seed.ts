import pg from 'pg';

/** What triggers and background tasks would have written for the stacks and updates of `seed`, in order of their references. */
const derived: Readonly<Record<string, string>> = {
  'changes of stacks': `insert into stack_changes (stack_id, organization_id, project_name, stack_name, changed_at)
    select s.id, p.organization_id, p.name, s.name, now() - random() * interval '300 days'
    from stacks s join projects p on p.id = s.project_id on conflict do nothing`,
  'active updates': `update stacks s set active_update_id = u.id from updates u where u.stack_id = s.id and u.status = 'running'`,
  'days of stacks': `insert into stack_days (organization_id, day, stack_id, runs, failed, run_ms, longest_ms, longest_id,
      changed, lead_seconds, restore_seconds)
    select u.organization_id, (now() - ((u.number % 90) || ' days')::interval)::date, u.stack_id, 1, (u.number % 20 = 0)::int, 60000, 60000, u.id,
      1, array[3600], case when u.number % 20 = 0 then array[600] else '{}' end
    from updates u where u.status = 'succeeded' and not u.dry_run on conflict do nothing`,
  'days of projects': `insert into project_days (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
      waited_ms, longest_ms)
    select d.organization_id, d.day, c.project_name, sum(d.runs), sum(d.failed), 0, 0, 0, 0, sum(d.run_ms), 0, max(d.longest_ms)
    from stack_days d join stack_changes c using (stack_id) group by 1, 2, 3`,
  'deliveries of projects': `insert into project_day_deliveries (organization_id, day, project_name, kind, seconds, count)
    select d.organization_id, d.day, c.project_name, k.kind, k.seconds, sum(k.count)
    from stack_days d join stack_changes c using (stack_id) cross join lateral deliveries_of_day(d) k group by 1, 2, 3, 4, 5`,
  'statistics of updates': `insert into update_statistics (update_id, stack_id, kind, is_preview, is_success, ended_at, seconds, creates, updates,
      deletes, replaces, steps)
    select u.id, u.stack_id, u.kind, u.dry_run, true, now() - ((u.number % 90) || ' days')::interval, 60, 1, 1, 0, 0, '[]'
    from updates u where u.status = 'succeeded'`,
  'drift runs': `insert into drift_runs (update_id, stack_id, organization_id, number, state, is_detected)
    select u.id, u.stack_id, u.organization_id, u.number, 'done', u.number % 200 = 0
    from updates u where u.kind = 'preview' and u.number % 10 = 0`,
  'failed updates': `update updates set status = 'failed' where status = 'succeeded' and number % 100 = 3`,
  troubles: `update stack_changes set trouble = stack_trouble(stack_id) where stack_id in (select stack_id from updates where status = 'failed')`,
  'last updates of stacks': `update stacks s set last_status = 'failed' from stack_changes c where c.stack_id = s.id and c.trouble = 'failed'`,
  'storage of stacks': `insert into stack_storage (stack_id, organization_id, state_bytes, measured_at)
    select stack_id, organization_id, 400, now() - random() * interval '1 day' from stack_changes on conflict do nothing`,
  'sums of organizations': `insert into stack_counts (organization_id, state_bytes, is_sum)
    select organization_id, sum(state_bytes), true from stack_storage group by 1`,
  'storage of organizations': `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at)
    select organization_id, (now() at time zone 'UTC')::date, sum(state_bytes), 0, 0, now() - interval '10 minutes' from stack_storage group by 1`,
  'indexes of states': `insert into state_indexes (stack_id, edition, version, checkpoint_id, is_ended, known_from, resource_count, indexed_at)
    select id, 1, stack_version, checkpoint_id, true, 0, 2, now() from stacks on conflict do nothing`,
  resources: `insert into stack_resources (stack_id, key, digest, urn, type, name, place, dependencies, is_custom, is_external, is_protected,
      deletes_first, is_deleted, provider, provider_version, reads)
    select s.id, n::text, 'd', 'urn:pulumi:' || s.name || '::p::' || t.type || '::' || n, t.type, 'resource-' || n || '-' || left(s.id::text, 4),
      t.type || n, '{}', true, false, false, false, false, case when n > 0 then '0' end, case when n = 0 then '1.' || hashtext(s.id::text) % 5 end,
      case when n = 1 and hashtext(s.id::text) % 50 = 0 then 'scale-0/project-00000/deep' end
    from stacks s, generate_series(0, 1) n
    cross join lateral (select case n when 0 then 'pulumi:providers:aws' else 'aws:s3/bucket:Bucket' end as type) t
    on conflict do nothing`,
  'stacks that refer to others': `update state_indexes i set referring_in = p.organization_id from stacks s join projects p on p.id = s.project_id
    where s.id = i.stack_id and exists (select 1 from stack_resources r where r.stack_id = i.stack_id and r.reads is not null)`,
  'looked at projects': `update projects p set may_be_empty = false where exists (select 1 from stacks s where s.project_id = p.id)`,
  'versions of indexes': `insert into version_changes (stack_id, version, created, updated, replaced, deleted, resource_count)
    select id, stack_version, 0, 1, 0, 0, 2 from stacks on conflict do nothing`,
  'changes of resources': `insert into resource_changes (stack_id, version, key, urn, type, change, path_count)
    select r.stack_id, v.version, r.key, r.urn, r.type, 'updated', 0 from stack_resources r join version_changes v using (stack_id)
    where r.key = '1' on conflict do nothing`,
  'audit events': `insert into audit_events (number, occurred_at, organization_id, organization, action, outcome, actor, login, token_name, sign_in,
      role, granted_by, address, user_agent, ci_run, object, update_id, request_id, details)
    select nextval('audit_event_numbers'), now() - (u.number % 86400) * interval '1 second', u.organization_id, o.name, 'update.start', 'done',
      'user', 'login-' || u.number % 50, '', 'token', 'admin', '', '', 'Pulumi CLI', '', o.name || '/p/s', u.id, '', '{}'
    from updates u join organizations o on o.id = u.organization_id where u.status = 'succeeded'`,
  'chained audit events': `update audit_chaining set chained_through = (select last_value from audit_event_numbers),
    horizon_through = (select last_value from audit_event_numbers)`,
  'refused runs': `insert into refused_runs (organization_id, stack_id, reason, kind, message, refused_at)
    select u.organization_id, u.stack_id, 'frozen', 'update', 'The stack is frozen', now() - (u.number % 86400) * interval '1 minute'
    from updates u where u.number % 100 = 7`,
  approvals: `insert into update_approvals (organization_id, stack_id, kind, commit_id, request, asked_at, asked_by)
    select u.organization_id, u.stack_id, 'update', md5(u.id::text), 'Please', now() - (u.number % 80000) * interval '1 second', 'ada'
    from updates u where u.number % 500 = 8 on conflict do nothing`,
};

/** Adds to a database that `seed` filled what lists, statistics, the search and the audit log read. */
export async function seedDerived(url: string, note: (text: string) => void): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('set statement_timeout = 0');
    await client.query(`set work_mem = '256MB'`);
    await client.query('set session_replication_role = replica');
    for (const [what, statement] of Object.entries(derived)) {
      const begun = performance.now();
      const { rowCount } = await client.query(statement);
      note(`${what}: ${rowCount ?? 0} rows in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
    }
    await client.query('set session_replication_role = origin');
  } finally {
    await client.end();
  }
}

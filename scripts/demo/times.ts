import pg from 'pg';

/** The intended times of an update, in ms. */
export interface Moment {
  readonly updateId: string;
  readonly beganMs: number;
  readonly endedMs: number;
}

/** Moves updates into the past: on the server, all of them have the time of the seeding. */
export async function spreadTimes(databaseUrl: string, moments: readonly Moment[]): Promise<void> {
  await withDatabase(databaseUrl, async (client) => {
    const columns = [
      moments.map(({ updateId }) => updateId),
      moments.map(({ beganMs }) => beganMs / 1000),
      moments.map(({ endedMs }) => endedMs / 1000),
    ];
    await client.query(
      `update updates u set created_at = to_timestamp(m.began), started_at = to_timestamp(m.began), ended_at = to_timestamp(m.ended)
       from unnest($1::uuid[], $2::float8[], $3::float8[]) as m (id, began, ended) where u.id = m.id`,
      columns,
    );
    // Durations are compared with these values.
    await client.query(
      `update update_statistics t set created_at = u.created_at, ended_at = u.ended_at, seconds = extract(epoch from u.ended_at - u.started_at)
       from updates u where u.id = t.update_id and u.id = any ($1::uuid[])`,
      columns.slice(0, 1),
    );
    // Some updates had to wait for their turn.
    await client.query(
      `update updates set waited_ms = 20000 + abs(hashtext(id::text)) % 600000
       where id = any ($1::uuid[]) and not dry_run and abs(hashtext(id::text)) % 9 = 0`,
      columns.slice(0, 1),
    );
    await client.query(
      `update stacks s set updated_at = l.ended, created_at = least(s.created_at, l.began - interval '1 minute')
       from (select stack_id, max(ended_at) as ended, min(created_at) as began from updates
             where status not in ('not started', 'running') group by stack_id) l
       where l.stack_id = s.id`,
    );
    await client.query('update stack_changes c set changed_at = s.updated_at from stacks s where s.id = c.stack_id');
    await client.query(
      'truncate stack_days, project_days, project_day_changes, project_day_deliveries, project_day_delivery_changes',
    );
    await client.query(
      `insert into stack_days (organization_id, day, stack_id, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms,
         longest_ms, longest_id)
       select p.organization_id, (u.ended_at at time zone 'UTC')::date, u.stack_id, count(*) filter (where not u.dry_run),
         count(*) filter (where not u.dry_run and u.status = 'failed'), count(*) filter (where not u.dry_run and u.status = 'cancelled'),
         count(*) filter (where u.dry_run), count(*) filter (where u.dry_run and u.status = 'failed'),
         count(u.waited_ms) filter (where not u.dry_run),
         coalesce(sum(1000 * extract(epoch from u.ended_at - u.started_at)) filter (where not u.dry_run), 0)::bigint,
         coalesce(sum(u.waited_ms) filter (where not u.dry_run), 0)::bigint,
         coalesce(max(1000 * extract(epoch from u.ended_at - u.started_at)) filter (where not u.dry_run), 0)::bigint,
         (array_agg(u.id order by u.ended_at - u.started_at desc) filter (where not u.dry_run))[1]
       from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
       where u.ended_at is not null and u.started_at is not null and u.kind not in ('import', 'rename') group by 1, 2, 3`,
    );
    // A trigger counts deliveries when statistics are recorded, so the statistics are recorded again with these times.
    await client.query('create temporary table recorded as select * from update_statistics');
    await client.query('delete from update_statistics where update_id in (select update_id from recorded)');
    await client.query('insert into update_statistics select * from recorded order by ended_at on conflict do nothing');
    await client.query('analyze');
  });
}

/** Spreads refusals over the last week. */
export async function spreadRefusals(databaseUrl: string): Promise<void> {
  await withDatabase(databaseUrl, (client) =>
    client.query(
      `update refused_runs r set refused_at = m.at,
         message = regexp_replace(r.message, 'since [0-9-]+T[0-9:.]+Z', 'since ' || to_char(m.at - interval '4 minutes', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
       from (select id, clock_timestamp() - interval '1 minute' * (id * 7919 % 9000) as at from refused_runs) m where m.id = r.id`,
    ),
  );
}

async function withDatabase(databaseUrl: string, act: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await act(client);
  } finally {
    await client.end();
  }
}

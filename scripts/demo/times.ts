import pg from 'pg';

/** When something happened: the update and how many days ago. */
export interface Moment {
  readonly updateId: string;
  readonly daysAgo: number;
  readonly seconds: number;
}

/** Moves updates into the past: the server has given all of them the time of the seeding. */
export async function spreadTimes(databaseUrl: string, moments: readonly Moment[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const columns = [
      moments.map(({ updateId }) => updateId),
      moments.map(({ daysAgo }) => daysAgo),
      moments.map(({ seconds }) => seconds),
    ];
    await client.query(
      `update updates u set
         created_at = m.began, started_at = m.began + interval '2 seconds', ended_at = m.began + make_interval(secs => m.seconds)
       from (select id, now() - days * interval '1 day' - make_interval(secs => seconds) as began, seconds
             from unnest($1::uuid[], $2::float8[], $3::float8[]) as t (id, days, seconds)) m
       where u.id = m.id`,
      columns,
    );
    await client.query(
      `update stacks s set updated_at = l.ended, created_at = least(s.created_at, l.began - interval '1 minute')
       from (select stack_id, max(ended_at) as ended, min(created_at) as began from updates
             where status not in ('not started', 'running') group by stack_id) l
       where l.stack_id = s.id`,
    );
    await client.query('analyze');
  } finally {
    await client.end();
  }
}

import pg from 'pg';

/** When an update is to have run, in ms. */
export interface Moment {
  readonly updateId: string;
  readonly beganMs: number;
  readonly endedMs: number;
}

/** Moves updates into the past: the server has given all of them the time of the seeding. */
export async function spreadTimes(databaseUrl: string, moments: readonly Moment[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
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
    await client.query(
      `update stacks s set updated_at = l.ended, created_at = least(s.created_at, l.began - interval '1 minute')
       from (select stack_id, max(ended_at) as ended, min(created_at) as began from updates
             where status not in ('not started', 'running') group by stack_id) l
       where l.stack_id = s.id`,
    );
    await client.query('update stack_changes c set changed_at = s.updated_at from stacks s where s.id = c.stack_id');
    await client.query('analyze');
  } finally {
    await client.end();
  }
}

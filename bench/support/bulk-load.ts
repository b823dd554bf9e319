import pg from 'pg';

/** For a Postgres whose data nobody needs after a crash. */
export const bulkFlags = [
  ...[
    'fsync=off',
    'full_page_writes=off',
    'synchronous_commit=off',
    'autovacuum=off',
    'wal_level=minimal',
    'max_wal_senders=0',
  ],
  ...[
    'checkpoint_timeout=1h',
    'max_wal_size=4GB',
    'maintenance_work_mem=1GB',
    'shared_buffers=2GB',
    'max_connections=60',
  ],
].flatMap((flag) => ['-c', flag]);

/** Unique indexes stay while rows are loaded. */
export async function withoutIndexes(
  url: string,
  load: () => Promise<void>,
  note: (text: string) => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('set statement_timeout = 0');
    const { rows } = await client.query<{ name: string; definition: string }>(
      `select c.oid::regclass::text as name, pg_get_indexdef(c.oid) as definition from pg_index i join pg_class c on c.oid = i.indexrelid
       where c.relnamespace = 'public'::regnamespace and not i.indisunique and c.relkind = 'i' and not c.relispartition
         and not exists (select 1 from pg_inherits h where h.inhrelid = c.oid)`,
    );
    for (const { name } of rows) await client.query(`drop index ${name}`);
    await load();
    const begun = performance.now();
    for (const { definition } of rows) await client.query(definition);
    note(`${rows.length} indexes in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  } finally {
    await client.end();
  }
}

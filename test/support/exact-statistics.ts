import type pg from 'pg';
import { until } from './until.ts';

/**
 * All tables unless some are named, so that plans are the same each time: the statistics are made from more rows than the usual sample, and
 * all rows are visible to all, however long another session, such as autovacuum's, keeps an older snapshot, and however few rows are dead.
 */
export async function analyzeExactly(client: pg.Client, ...tables: readonly string[]): Promise<void> {
  await client.query('set default_statistics_target = 1000');
  await until(async () => {
    await client.query(`vacuum (analyze, index_cleanup on) ${tables.join(', ')}`);
    const { rows } = await client.query(
      `select 1 from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relallvisible < relpages
         and (relname = any($1) or $1 = '{}')`,
      [tables],
    );
    return rows.length === 0;
  }, 'all rows are visible to all');
  await client.query('reset default_statistics_target');
}

import pg from 'pg';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/** The transaction has run `statement`; `end` commits or rolls back. */
export async function during<T>(
  app: TestApp,
  [statement, ...values]: readonly [string, ...unknown[]],
  work: (session: pg.Client, end: (how: 'commit' | 'rollback') => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const session = new pg.Client({ connectionString: app.database.ownerUrl });
  await session.connect();
  try {
    await session.query('begin');
    await session.query(statement, values);
    return await work(session, (how) => session.query(how));
  } finally {
    await session.end();
  }
}

/** Waits until as many transactions have waited for that of `session`, at once or one after the other. */
export async function blockedBy(app: TestApp, session: pg.Client, transactions = 1): Promise<void> {
  const { rows } = await session.query('select pg_backend_pid() as pid');
  const blocked = `select pid || ' ' || xact_start as id from pg_stat_activity where $1 = any (pg_blocking_pids(pid))`;
  const seen = new Set<unknown>();
  await until(async () => {
    for (const { id } of await query(app, blocked, [rows[0].pid])) seen.add(id);
    return seen.size >= transactions;
  }, `${transactions} transactions wait`);
}

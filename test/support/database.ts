import pg from 'pg';
import { runInKeptSession } from './kept-sessions.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/** Runs SQL beside the app, in a session of the test's own, as the owner of the tables. */
export async function query<R extends pg.QueryResultRow = Record<string, unknown>>(
  app: TestApp,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  return (await runInKeptSession<R>(app.database.ownerUrl, text, values)).rows;
}

/** Makes each insert into the table wait with its transaction open until the gate is released or disposed of. */
export async function holdInserts(
  app: TestApp,
  table: string,
): Promise<
  AsyncDisposable & {
    [Symbol.asyncDispose](): Promise<void>;
    reached(sessions: number): Promise<void>;
    release(): Promise<void>;
  }
> {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await client.query('select pg_advisory_lock(1)');
  await client.query(`create function hold() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`);
  await client.query(`create trigger hold before insert on ${table} for each row execute function hold()`);
  let released = false;
  const release = async (): Promise<void> => {
    if (released) return;
    released = true;
    await client.query('select pg_advisory_unlock(1)');
  };
  return {
    /** Waits until this many sessions wait for a lock, at the gate or behind one that does. */
    reached: (sessions) =>
      until(async () => {
        const { rows } = await client.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rows.length >= sessions;
      }, `${sessions} sessions wait`),
    release,
    [Symbol.asyncDispose]: async () => {
      await release();
      await client.query('drop function hold cascade');
      await client.end();
    },
  };
}

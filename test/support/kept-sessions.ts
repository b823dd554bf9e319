import pg from 'pg';

/** A session costs Postgres and the test several ms of CPU time, and tests ask often. */
const idleMs = 500;
const pools = new Map<string, pg.Pool>();
const used = new WeakSet<pg.PoolClient>();

function poolOf(url: string): pg.Pool {
  const found = pools.get(url);
  if (found) return found;
  const pool = new pg.Pool({ connectionString: url, max: 20, idleTimeoutMillis: idleMs, allowExitOnIdle: true });
  // Tests end sessions and servers; the pool then drops the session.
  pool.on('error', () => {});
  pools.set(url, pool);
  return pool;
}

/** The session is kept for half a second, and other statements may use it. */
export async function runInKeptSession<R extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult<R>> {
  for (;;) {
    const client = await poolOf(url).connect();
    const wasIdle = used.has(client);
    used.add(client);
    try {
      const result = await client.query<R>(text, [...values]);
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      // It had ended before: nothing has run.
      if (!(wasIdle && isEnded(error))) throw error;
    }
  }
}

/** Ends the sessions of a database that are kept, such as before it is copied. */
export async function endKeptSessions(url: string): Promise<void> {
  const pool = pools.get(url);
  pools.delete(url);
  await pool?.end();
}

function isEnded(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return code === '57P01' || code === 'ECONNRESET' || code === 'EPIPE' || /^Connection terminated/.test(message ?? '');
}

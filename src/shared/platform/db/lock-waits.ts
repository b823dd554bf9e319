import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';
import { assertCommitted } from './rolled-back-error.ts';

/** Limits of a migration's waits for tables in use by other sessions. */
export interface LockPatience {
  /** One statement waits this long for a lock. Calls that need the table queue behind it. */
  readonly lockMs: number;
  /** The pause before the next attempt, doubled each time up to `maxPauseMs`. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
  /** Attempts are repeated this long without progress, since the first one that got no lock. */
  readonly giveUpMs: number;
  /** The interval of checks of the sessions that hold the locks. */
  readonly watchMs: number;
}

export const lockPatience: LockPatience = {
  lockMs: 2_000,
  firstPauseMs: 1_000,
  maxPauseMs: 15_000,
  giveUpMs: 600_000,
  watchMs: 500,
};

export class TableInUseError extends OperatorError {
  override readonly name = 'TableInUseError';
}

interface Wait {
  /** Null if a statement waits for the end of a transaction. */
  readonly table: string | null;
  readonly sessions: readonly string[];
}

/** A lock was not available in time; a deadlock. */
const lockStates = new Set(['55P03', '40P01']);
const newIndex = /\bcreate\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(\w+)/i;
export const relogMs = 30_000;

/**
 * Gives up locks that are not available soon and tries again later, so that no call queues behind a migration for long. Building or
 * dropping an index concurrently may wait, because calls do not queue behind it. Reports the sessions that block a migration.
 */
export class LockWaits {
  readonly #client: pg.Client;
  readonly #observer: pg.Client;
  readonly #patience: LockPatience;
  readonly #logger: Logger;
  readonly #pid: number;
  readonly #timer: NodeJS.Timeout;
  #last: Wait | null = null;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  #inTransaction = false;

  private constructor(parts: {
    client: pg.Client;
    observer: pg.Client;
    patience: LockPatience;
    logger: Logger;
    pid: number;
  }) {
    this.#client = parts.client;
    this.#observer = parts.observer;
    this.#patience = parts.patience;
    this.#logger = parts.logger;
    this.#pid = parts.pid;
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null;
      });
    }, this.#patience.watchMs);
  }

  /** `observer` is connected to the same server. Close this object before the connections. */
  static async start(
    client: pg.Client,
    observer: pg.Client,
    { logger, patience }: { readonly logger: Logger; readonly patience: LockPatience },
  ): Promise<LockWaits> {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    await limit(client, patience.lockMs);
    return new LockWaits({ client, observer, patience, logger, pid: rows[0]?.pid as number });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Its statements outside transactions are repeated when they get no lock. */
  get client(): pg.Client {
    return new Proxy(this.#client, {
      get: (client, name) => {
        if (name === 'query') return (query: string | pg.QueryConfig, values?: unknown[]) => this.#query(query, values);
        const value: unknown = Reflect.get(client, name);
        return typeof value === 'function' ? value.bind(client) : value;
      },
    });
  }

  /** An attempt without its locks leaves nothing behind, except what `progress` reports. Throws TableInUseError. */
  async repeat<T>(
    attempt: () => Promise<T>,
    recover: () => Promise<unknown> = async () => {},
    progress: () => Promise<string | number> = async () => 0,
  ): Promise<T> {
    let last: { at: number; done: string | number } = { at: 0, done: -1 };
    for (let pauseMs = this.#patience.firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, this.#patience.maxPauseMs)) {
      try {
        return await attempt();
      } catch (error) {
        if (!lockStates.has(String((error as { code?: unknown }).code))) throw error;
        await recover();
        const done = await progress();
        if (last.done !== done) last = { at: performance.now(), done };
        if (performance.now() - last.at + pauseMs > this.#patience.giveUpMs) throw this.#giveUp();
        this.#logger.warn({ ...this.#last, pauseMs }, 'the migration lets other sessions go first and tries again');
        await sleep(pauseMs);
      }
    }
  }

  async #query(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult> {
    const text = typeof query === 'string' ? query : query.text;
    const run = async (): Promise<pg.QueryResult> => {
      const result = await this.#client.query(query as string, values);
      assertCommitted(text, result);
      return result;
    };
    if (/^\s*begin\b/i.test(text)) this.#inTransaction = true;
    // A commit that is repeated alone would succeed without the transaction.
    const isEnd = /^\s*(?:commit|rollback)\b/i.test(text);
    if (isEnd) this.#inTransaction = false;
    if (isEnd || this.#inTransaction) return run();
    if (!/\bindex\s+concurrently\b/i.test(text)) return this.#repeatBatches(run);
    await limit(this.#client, 0);
    const index = newIndex.exec(text)?.[1];
    // A deadlock leaves an invalid index behind.
    const recover = async (): Promise<void> => {
      if (index !== undefined) await this.#client.query(`drop index concurrently if exists ${index}`);
    };
    const result = await this.repeat(run, recover);
    await limit(this.#client, this.#patience.lockMs);
    return result;
  }

  /** The statement may commit batches, and restarts with the first one. */
  async #repeatBatches(run: () => Promise<pg.QueryResult>): Promise<pg.QueryResult> {
    let before = 0;
    let most = 0;
    return this.repeat(
      async () => {
        before = (await readReached(this.#client)).transactions;
        return run();
      },
      undefined,
      async () => {
        const { reached, transactions } = await readReached(this.#client);
        most = Math.max(most, transactions - before);
        return `${most} ${reached}`;
      },
    );
  }

  async rollback(): Promise<void> {
    this.#inTransaction = false;
    await this.#client.query('rollback');
  }

  async #look(): Promise<void> {
    const found = await findWait(this.#observer, this.#pid).catch(() => null);
    if (found === null) return;
    const isNew = found.table !== this.#last?.table || String(found.sessions) !== String(this.#last.sessions);
    this.#last = found;
    if (!isNew && performance.now() - this.#loggedAt < relogMs) return;
    this.#loggedAt = performance.now();
    this.#logger.warn({ ...found }, 'the migration waits for other sessions');
  }

  #giveUp(): TableInUseError {
    const minutes = Math.round(this.#patience.giveUpMs / 60_000);
    const table = this.#last?.table ?? 'a table';
    const by = this.#last ? ` by ${this.#last.sessions.join('; ')}` : '';
    return new TableInUseError(
      `The migration could not lock ${table} for ${minutes} minutes: it is in use${by}. End the session, for instance with pg_terminate_backend(pid), and migrate again: what was applied stays applied.`,
    );
  }
}

function limit(client: pg.Client, lockMs: number): Promise<unknown> {
  return client.query(`set lock_timeout = ${lockMs}`);
}

/** `reached` is what the statement itself reports; `transactions` are those of the session. */
async function readReached(client: pg.Client): Promise<{ reached: string; transactions: number }> {
  const { rows } = await client.query<{ reached: string | null; transactions: string }>(
    `select current_setting('holdfast.migrated', true) as reached, split_part(virtualtransaction, '/', 2) as transactions
     from pg_locks where pid = pg_backend_pid() and locktype = 'virtualxid'`,
  );
  return { reached: rows[0]?.reached ?? '', transactions: Number(rows[0]?.transactions) };
}

/** Omits the session's statements, which may contain secrets. */
const describedSession = `format('session %s (%s of user %s%s, %s, in a transaction for %s s)', a.pid, coalesce(nullif(a.application_name, ''), 'no name'),
  a.usename, ' at ' || host(a.client_addr), coalesce(a.state, 'unknown'),
  coalesce(extract(epoch from clock_timestamp() - a.xact_start)::integer / 10 * 10, 0))`;

/** Lists the sessions that hold an advisory lock of this database. */
export async function findHolders(client: pg.Client, lockId: number): Promise<readonly string[]> {
  const { rows } = await client.query<{ session: string }>(
    `select ${describedSession} as session from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and ((l.classid::bigint << 32) | l.objid::bigint) = $1
       and l.database = (select oid from pg_database where datname = current_database())`,
    [lockId],
  );
  return rows.map(({ session }) => session);
}

/** Lists the sessions for which a session waits. Omits the observer, for whose snapshots an index build waits. */
async function findWait(observer: pg.Client, pid: number): Promise<Wait | null> {
  const { rows } = await observer.query<{ table: string | null; session: string }>(
    `select (select l.relation::regclass::text from pg_locks l where l.pid = $1 and not l.granted limit 1) as table,
       ${describedSession} as session
     from unnest(pg_blocking_pids($1)) as b (pid) join pg_stat_activity a on a.pid = b.pid
     where a.pid <> pg_backend_pid()
     order by a.xact_start nulls last limit 5`,
    [pid],
  );
  const [first] = rows;
  return first ? { table: first.table, sessions: rows.map(({ session }) => session) } : null;
}

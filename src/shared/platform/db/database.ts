import { createPgDriverFactory } from '@slonik/pg-driver';
import { createPool, type DatabasePool, type DatabaseTransactionConnection } from 'slonik';
import { Type } from 'typebox';
import { createRowChecker, type Queryable, sql } from './sql.ts';

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/name`. */
  readonly url: string;
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
}

/** The pool, with transactions that repeat themselves on deadlock and serialization failure. */
export interface Database extends Queryable {
  /** Runs `work` in one transaction; repeated up to 5 times when Postgres rolls it back for a conflict (class 40). */
  inTransaction<T>(work: (tx: DatabaseTransactionConnection) => Promise<T>): Promise<T>;
  /** Resolves when Postgres answers, rejects when it has not within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  poolState(): { acquired: number; idle: number; waiting: number };
  close(): Promise<void>;
}

const Pong = Type.Object({ one: Type.Integer() });

/** Opens the pool. Parsers: timestamptz is a Date, bytea a Buffer, int8 a number (all of ours stay below 2^53). */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pool = await createPool(options.url, {
    driverFactory: createPgDriverFactory(),
    maxPoolSize: options.poolSize,
    idleTimeout: 60_000,
    connectionTimeout: 5_000,
    statementTimeout: options.statementTimeoutMs,
    transactionRetryLimit: 5,
    interceptors: [createRowChecker()],
    typeParsers: [{ name: 'int8', parse: Number }],
    // No session state is ever set on a pooled connection, so there is nothing to discard on release.
    resetConnection: async () => {},
  });
  // slonik emits 'error' for idle connections that Postgres closes; the next query opens a new one.
  pool.on('error', () => {});
  return Object.assign(Object.create(pool) as DatabasePool, {
    inTransaction: <T>(work: (tx: DatabaseTransactionConnection) => Promise<T>) => pool.transaction(work),
    ping: async (timeoutMs: number) => {
      const query = pool.one(sql.rows(Pong)`/* database.ping */ select 1 as one`);
      await withDeadline(query, timeoutMs);
    },
    poolState: () => {
      const state = pool.state();
      return { acquired: state.acquiredConnections, idle: state.idleConnections, waiting: state.waitingClients };
    },
    close: () => pool.end(),
  });
}

async function withDeadline(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer from Postgres within ${timeoutMs} ms`)), timeoutMs);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {});
  }
}

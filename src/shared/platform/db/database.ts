import { type CommonQueryMethods, createPool, type DatabasePool, type DatabaseTransactionConnection } from 'slonik';
import { Type } from 'typebox';
import { withTimeout } from '../timeout/with-timeout.ts';
import { ConnectionGate } from './connection-gate.ts';
import { PostgresConnector } from './postgres-connector.ts';
import { createPostgresDriver, queryLimit } from './postgres-driver.ts';
import { createRowChecker, type Queryable, sql } from './sql.ts';

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/name`; several hosts, with commas between, are asked for the one that takes writes. */
  readonly url: string;
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
  /** Longest time until a server lets us in. A statement is given up when its answer is this late. */
  readonly connectTimeoutMs: number;
  /** Longest wait for a free connection of the pool. */
  readonly acquireTimeoutMs: number;
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

/** No transaction of ours waits for anything but Postgres. One that does has lost its process or its network, and holds locks. */
const idleInTransactionMs = 15_000;

/** What takes a connection of the pool for as long as it runs. */
const gated = [
  ...['any', 'anyFirst', 'exists', 'many', 'manyFirst', 'maybeOne', 'maybeOneFirst'],
  ...['one', 'oneFirst', 'query', 'record', 'transaction', 'connect'],
] as readonly Extract<keyof DatabasePool, string>[];

/**
 * Opens the pool; connections are made when they are needed. Parsers: timestamptz is a Date, bytea a Buffer, int8 a number
 * (all of ours stay below 2^53). No call waits without a limit: whatever hangs ends as an error that `mapDatabaseError` knows.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { poolSize, statementTimeoutMs, connectTimeoutMs, acquireTimeoutMs } = options;
  const connector = new PostgresConnector(options.url, {
    connectMs: connectTimeoutMs,
    statementMs: statementTimeoutMs,
    idleInTransactionMs,
  });
  const pool = await createPool('postgres://', {
    driverFactory: createPostgresDriver(connector, statementTimeoutMs + connectTimeoutMs),
    maxPoolSize: poolSize,
    idleTimeout: 60_000,
    // One attempt: the connector has been to every server by then.
    connectionRetryLimit: 1,
    gracefulTerminationTimeout: 2_000,
    transactionRetryLimit: 5,
    interceptors: [createRowChecker()],
    typeParsers: [],
    // No session state is ever set on a pooled connection, so there is nothing to discard on release.
    resetConnection: async () => {},
  });
  // slonik emits 'error' for idle connections that Postgres closes; the next query opens a new one.
  pool.on('error', () => {});
  const gate = new ConnectionGate(poolSize);
  const methods: Record<string, unknown> = {};
  for (const name of gated) {
    const method = pool[name] as (...args: unknown[]) => Promise<unknown>;
    methods[name] = (...args: unknown[]) => gate.run(acquireTimeoutMs, () => method(...args));
  }
  const database = Object.assign(Object.create(pool) as DatabasePool, methods);
  return Object.assign(database as CommonQueryMethods, {
    inTransaction: <T>(work: (tx: DatabaseTransactionConnection) => Promise<T>) => database.transaction(work),
    ping: (timeoutMs: number) => ping(gate, pool, timeoutMs),
    poolState: () => {
      const state = pool.state();
      return { acquired: state.acquiredConnections, idle: state.idleConnections, waiting: gate.waiting };
    },
    close: () => pool.end(),
  });
}

async function ping(gate: ConnectionGate, pool: DatabasePool, timeoutMs: number): Promise<void> {
  // With a limit of its own at each step: probes that hang must not use up the pool.
  const work = queryLimit.run(timeoutMs, () =>
    gate.run(timeoutMs, () => pool.one(sql.rows(Pong)`/* database.ping */ select 1 as one`)),
  );
  await withTimeout(work, timeoutMs, () => new Error(`No answer from Postgres within ${timeoutMs} ms`));
}

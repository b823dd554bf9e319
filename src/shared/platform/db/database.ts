import type { CommonQueryMethods, DatabasePoolConnection, DatabaseTransactionConnection, QuerySqlToken } from 'slonik';
import { Type } from 'typebox';
import { withTimeout } from '../timeout/with-timeout.ts';
import { ConnectionChecks } from './connection-checks.ts';
import { ConnectionGate } from './connection-gate.ts';
import { ConnectionPool } from './connection-pool.ts';
import { LockRepeats, lockWaitMs } from './lock-repeats.ts';
import { NotificationChannel } from './notification-channel.ts';
import { listenOn, type Notifications } from './notification-listener.ts';
import { type PostgresConnection, PostgresConnector } from './postgres-connector.ts';
import { createPostgresDriver, queryLimit } from './postgres-driver.ts';
import type { PostgresSetting } from './postgres-url.ts';
import type { RaisedMessage } from './raised-messages.ts';
import { createRowChecker, poolMark, type Queryable, sql } from './sql.ts';

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/name`. Of several comma-separated hosts, the one that accepts writes is used. */
  readonly url: string;
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
  /** The limit of a login to a server. A statement fails if its response is overdue by this time. */
  readonly connectTimeoutMs: number;
  /** Maximum wait for a free connection of the pool. */
  readonly acquireTimeoutMs: number;
  /** The setting that contains `url`. */
  readonly setting?: PostgresSetting;
}

export type Connection = DatabasePoolConnection;

export interface Database extends Queryable {
  /** `work` is repeated up to 5 times after a conflict (class 40), and after lock timeouts (`LockRepeats`). */
  inTransaction<T>(work: (tx: DatabaseTransactionConnection) => Promise<T>): Promise<T>;
  /** Closes the connection if `work` throws. */
  onConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  /** `check` runs before the first use of each connection of the pool from now on. A connection that fails is closed. */
  checkConnections(check: (connection: Connection) => Promise<void>): void;
  /** The first callers of a new process need not wait for logins. */
  openConnections(): Promise<void>;
  /** A response to another call also counts. Rejects after `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** Notifications may be lost; see `listenOn`. */
  listen(channel: string, onMessage: (payload: string) => void): Notifications;
  /** Its separate connection is opened by the first use. */
  channel(name: string): NotificationChannel;
  /** `listener` is called after the end of the statement's transaction. */
  onRaised(listener: (message: RaisedMessage) => void): void;
  /** Opens a connection outside the pool, for statements of any length. The caller ends it. */
  openSession(): Promise<PostgresConnection>;
  /** Background work should then wait; see ConnectionGate. */
  servesFirst(): boolean;
  poolState(): { acquired: number; idle: number; waiting: number };
  close(): Promise<void>;
}

const Pong = Type.Object({ one: Type.Integer() });

/** Our transactions wait only for Postgres. An idle one has lost its process or network, and still holds locks. */
const idleInTransactionMs = 15_000;

const statementMethods = [
  ...['any', 'anyFirst', 'exists', 'many', 'manyFirst', 'maybeOne', 'maybeOneFirst'],
  ...['one', 'oneFirst', 'query', 'record'],
] as readonly Exclude<keyof CommonQueryMethods, 'transaction'>[];

/**
 * Opens connections on demand. timestamptz is a Date, bytea a Buffer, int8 a number (all our values stay below 2^53). Every wait has a
 * limit: a hanging call fails with an error that `mapDatabaseError` recognizes.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { poolSize, statementTimeoutMs, connectTimeoutMs, acquireTimeoutMs } = options;
  const limits = { connectMs: connectTimeoutMs, statementMs: statementTimeoutMs, idleInTransactionMs, lockWaitMs };
  const connector = new PostgresConnector(options.url, limits, options.setting);
  const sessions = new PostgresConnector(options.url, { connectMs: connectTimeoutMs }, options.setting);
  const listeners = new Set<(message: RaisedMessage) => void>();
  const onRaised = (message: RaisedMessage): void => {
    for (const listener of listeners) listener(message);
  };
  const checks = new ConnectionChecks();
  const pool = await ConnectionPool.create(poolSize, {
    driverFactory: createPostgresDriver(connector, statementTimeoutMs + connectTimeoutMs, onRaised),
    // Proxies in between drop a connection later.
    idleTimeout: 300_000,
    // The connector itself tries every server.
    connectionRetryLimit: 1,
    gracefulTerminationTimeout: 2_000,
    transactionRetryLimit: 5,
    // A statement that conflicts with the recovery of a replica is repeated on the primary.
    ...(options.setting === 'HOLDFAST_DATABASE_REPLICA_URL' ? { queryRetryLimit: 0 } : {}),
    interceptors: [createRowChecker(), checks.interceptor],
    typeParsers: [],
    // Pooled connections have no session state.
    resetConnection: async () => {},
  });
  const gate = new ConnectionGate(poolSize);
  const admit = <T>(work: () => Promise<T>): Promise<T> => gate.run(acquireTimeoutMs, work);
  const repeats = new LockRepeats(poolSize, statementTimeoutMs);
  const inTransaction = <T>(work: (tx: DatabaseTransactionConnection) => Promise<T>): Promise<T> =>
    repeats.transaction((repeated) => admit(() => pool.transaction(repeated)), work);
  const methods: Record<string, unknown> = { transaction: inTransaction };
  for (const name of statementMethods)
    methods[name] = (query: QuerySqlToken) =>
      repeats.run(() =>
        admit(() =>
          pool.run((connection) => {
            const run = connection[name] as (this: Connection, query: QuerySqlToken) => Promise<unknown>;
            return run.call(connection, query);
          }),
        ),
      );
  const onConnection = <T>(work: (connection: Connection) => Promise<T>) => admit(() => pool.connect(work));
  return Object.assign(methods as unknown as CommonQueryMethods, {
    [poolMark]: true,
    inTransaction,
    onConnection,
    checkConnections: (check: (connection: Connection) => Promise<void>) => checks.add(check),
    openConnections: () => openConnections(onConnection, poolSize),
    listen: (channel: string, onMessage: (payload: string) => void) => listenOn(connector, channel, onMessage),
    channel: (name: string) => new NotificationChannel(connector, name),
    onRaised: (listener: (message: RaisedMessage) => void) => void listeners.add(listener),
    openSession: () => sessions.connect(),
    ping: (timeoutMs: number) => ping(gate, pool, timeoutMs),
    servesFirst: () => gate.servesFirst,
    poolState: () => ({ ...pool.state(), waiting: gate.waiting + repeats.waiting }),
    close: () => pool.end(),
  });
}

/** If a login is slow, callers get the open connections after this time. */
const maxHoldMs = 1_000;

async function openConnections(onConnection: Database['onConnection'], count: number): Promise<void> {
  let open = 0;
  const { promise: allOpen, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, maxHoldMs);
  const hold = async (): Promise<void> => {
    try {
      await onConnection(async () => {
        if (++open === count) resolve();
        // Each connection is held until all are open, so that each of the other calls opens its own.
        await allOpen;
      });
    } finally {
      // After a failed login, the other calls stop waiting.
      resolve();
    }
  };
  await Promise.all(Array.from({ length: count }, hold)).finally(() => clearTimeout(timer));
}

async function ping(gate: ConnectionGate, pool: ConnectionPool, timeoutMs: number): Promise<void> {
  const begunAt = performance.now();
  // Each step has its own limit, so that hanging probes do not exhaust the pool.
  const work = queryLimit.run(timeoutMs, () =>
    gate.run(timeoutMs, () =>
      pool.run((connection) => connection.one(sql.rows(Pong)`/* database.ping */ select 1 as one`)),
    ),
  );
  try {
    await withTimeout(work, timeoutMs, () => new Error(`No answer from Postgres within ${timeoutMs} ms`));
  } catch (error) {
    // Postgres is slow but responds to others: a proxy that removed each busy replica would soon have none left.
    if (gate.lastServedAt < begunAt) throw error;
  }
}

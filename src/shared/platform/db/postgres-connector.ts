import { Socket } from 'node:net';
import pg from 'pg';
import { OperatorError } from '../errors/errors.ts';
import { tlsFaultOf } from '../tls/certificates.ts';
import { type PostgresHost, type PostgresSetting, type PostgresTarget, parsePostgresUrl } from './postgres-url.ts';
import { allowLongStatements, liftLimits } from './session-limits.ts';

export interface ConnectionLimits {
  /** The limit of a login to one server. */
  readonly connectMs: number;
  /** The limit of one statement, enforced by the server; none if missing. */
  readonly statementMs?: number;
  /** The limit of idle time in a transaction, enforced by the server; none if missing. */
  readonly idleInTransactionMs?: number;
  /** The limit of a wait for one lock; none if missing. Not behind a pooler, which would refuse it as a parameter. */
  readonly lockWaitMs?: number;
}

export interface PostgresConnection {
  readonly client: pg.Client;
  readonly host: PostgresHost;
  /** Behind a pooler, statements of one connection may run in several sessions. */
  readonly isPooled: boolean;
  /** Closes the socket even if the server does not respond. */
  end(): Promise<void>;
  destroy(): void;
}

/** `cause` is the most informative of the servers' errors. */
class NoPrimaryError extends Error {
  override readonly name = 'NoPrimaryError';
}

export const readOnlyState = '25006';

/** The name of the sessions, unless the database URL has another one. */
const applicationName = 'holdfast';

/** After this idle time, the kernel sends TCP keep-alive probes. It drops a dead connection about 10 s later. */
const keepAliveMs = 10_000;
const closeTimeoutMs = 1_000;

/**
 * Opens connections to the server that accepts writes. Tries the last successful server first. node-postgres itself supports only one
 * server.
 */
export class PostgresConnector {
  readonly #target: PostgresTarget;
  readonly #limits: ConnectionLimits;
  #preferred = 0;

  constructor(url: string, limits: ConnectionLimits, setting?: PostgresSetting) {
    this.#target = parsePostgresUrl(url, setting);
    this.#limits = limits;
  }

  /** For logs and messages. */
  get address(): string {
    return this.#target.hosts.map(({ name }) => name).join(', ');
  }

  /**
   * Retries if the connection breaks meanwhile and `connectMs` is not over. Throws the server's error if there is only one server,
   * otherwise NoPrimaryError.
   */
  async connect(): Promise<PostgresConnection> {
    const deadline = performance.now() + this.#limits.connectMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connectOnce();
      } catch (error) {
        if (attempt === maxAttempts || performance.now() >= deadline || !isBroken(error)) throw error;
      }
    }
  }

  async #connectOnce(): Promise<PostgresConnection> {
    const { hosts } = this.#target;
    const first = this.#preferred;
    const errors: { host: PostgresHost; error: unknown }[] = [];
    for (let offset = 0; offset < hosts.length; offset++) {
      const index = (first + offset) % hosts.length;
      const host = hosts[index] as PostgresHost;
      try {
        const connection = await this.#connectTo(host);
        this.#preferred = index;
        return connection;
      } catch (error) {
        errors.push({ host, error });
      }
    }
    if (errors.length === 1) throw errors[0]?.error;
    // This error is from the server that accepts writes, so waiting does not help.
    const unsafe = errors.find(({ error }) => error instanceof UnsafeDefaultError);
    if (unsafe) throw unsafe.error;
    const message = errors.map(({ host, error }) => `${host.name}: ${messageOf(error)}`).join('; ');
    // Prefer the error of a server that responded: waiting does not help against a wrong password.
    const cause = (
      errors.find(({ error }) => error instanceof pg.DatabaseError) ??
      errors.find(({ error }) => tlsFaultOf(error) !== null) ??
      errors[0]
    )?.error;
    throw new NoPrimaryError(message, { cause });
  }

  async #connectTo(host: PostgresHost): Promise<PostgresConnection> {
    const { connectMs, statementMs, idleInTransactionMs, lockWaitMs } = this.#limits;
    const limits = {
      ...(statementMs === undefined ? {} : { statement_timeout: statementMs }),
      ...(idleInTransactionMs === undefined ? {} : { idle_in_transaction_session_timeout: idleInTransactionMs }),
    };
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: host.url,
      ssl: this.#target.tls,
      stream: () => socket,
      fallback_application_name: applicationName,
      types: { getTypeParser },
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      ...limits,
    });
    // Errors between queries surface in the next query. Without a listener they would crash the process.
    client.on('error', () => {});
    const destroy = (): void => {
      socket.destroy();
    };
    let immediate: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // A process that was blocked or suspended first reads the data that has arrived meanwhile.
      immediate = setImmediate(() => socket.destroy(new ConnectTimeoutError(connectMs)));
    }, connectMs);
    let isPooled: boolean;
    try {
      await client.connect();
      isPooled = await look(client, this.#target.mustTakeWrites);
      // A pooler would pass the change on to other clients.
      if (!isPooled)
        await (statementMs === undefined
          ? allowLongStatements(client)
          : liftLimits(client, { ours: limits, lockWaitMs }));
    } catch (error) {
      destroy();
      throw error;
    } finally {
      clearTimeout(timer);
      clearImmediate(immediate);
    }
    const end = async (): Promise<void> => {
      const timeout = setTimeout(destroy, closeTimeoutMs);
      await client.end().catch(() => {});
      clearTimeout(timeout);
    };
    return { client, host, isPooled, end, destroy };
  }
}

class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
  readonly code = 'ETIMEDOUT';

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
  }
}

/** Two broken connections in a row can be chance; three indicate a faulty server. */
const maxAttempts = 3;

/** Whether an established connection was cut. Unlike after a rejection, a retry may succeed immediately. */
function isBroken(error: unknown): boolean {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (code === 'ECONNRESET' || code === 'EPIPE' || /Connection terminated/.test(String(message))) return true;
  return error instanceof NoPrimaryError && cause !== undefined && isBroken(cause);
}

/** Holdfast cannot work with a default of the pooled sessions, and cannot change it there. */
class UnsafeDefaultError extends OperatorError {
  override readonly name = 'UnsafeDefaultError';
  readonly code = unsafeDefaultCode;
}

export const unsafeDefaultCode = 'UNSAFE_DEFAULT';

interface Look {
  readonly pid: number;
  readonly readOnly: string;
  readonly durability: string;
  readonly isolation: string;
  readonly dateStyle: string;
}

/**
 * Returns whether a pooler is in between. If the server must take writes, throws NoPrimaryError for a standby or a read-only primary, which
 * both accept connections. Overrides defaults of the database and the role: a commit waits until it is on disk, a statement that has waited
 * for a lock sees the commits in between, and times are read as ISO.
 */
async function look(client: pg.Client, mustTakeWrites: boolean): Promise<boolean> {
  // A standby runs nothing at the level `serializable`, which may be the default.
  const [, looked] = (await client.query<Look>(
    `/* connection.check */ begin isolation level read committed;
     select pg_backend_pid() as pid,
       current_setting('transaction_read_only') as "readOnly",
       current_setting('synchronous_commit') as durability, current_setting('default_transaction_isolation') as isolation,
       current_setting('DateStyle') as "dateStyle";
     commit`,
  )) as unknown as readonly [pg.QueryResult, pg.QueryResult<Look>];
  const { pid, readOnly, durability, isolation, dateStyle } = looked.rows[0] as Look;
  // Other values, e.g. remote_apply, wait for more than the disk.
  if (durability === 'off') await client.query('set synchronous_commit = on');
  if (mustTakeWrites && readOnly === 'on')
    throw new NoPrimaryError('accepts no writes: a standby, or set to read-only');
  const pooled = isPooled(client, pid);
  for (const [name, isSafe, value] of [
    // Postgres treats "read uncommitted" the same.
    ['default_transaction_isolation', isolation.startsWith('read '), 'read committed'],
    ['DateStyle', dateStyle.startsWith('ISO'), 'ISO'],
  ] as const) {
    if (isSafe) continue;
    if (pooled)
      throw new UnsafeDefaultError(
        `the pooled sessions of this role have another ${name}. Run: alter role … set ${name} = '${value}', then let the pooler connect anew`,
      );
    await client.query(`set ${name} = '${value}'`);
  }
  return pooled;
}

/** A pooler gives its clients process ids of its own. */
export function isPooled(client: pg.Client, backendPid: number | undefined): boolean {
  return (client as unknown as { processID: number | null }).processID !== backendPid;
}

function messageOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  return String(message || code || error);
}

const int8 = 20;
const int8Array = 1016;
const textArray: number = 1009;

/** Uses node-postgres's parsers, except that int8 becomes a number: all our values stay below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === int8) return Number;
  if (oid === int8Array) {
    const parse = pg.types.getTypeParser(textArray, 'text') as (value: string) => (string | null)[];
    return (value) => parse(value).map((item) => (item === null ? null : Number(item)));
  }
  return pg.types.getTypeParser(oid, format as 'text');
}

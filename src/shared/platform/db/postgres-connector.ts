import type { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import pg from 'pg';
import { tlsFaultOf } from '../tls/trust.ts';
import { type PostgresHost, type PostgresTarget, parsePostgresUrl } from './postgres-url.ts';

/** Limits of one connection, in milliseconds. */
export interface ConnectionLimits {
  /** Longest time until one server has answered and let us in. */
  readonly connectMs: number;
  /** Longest run of one statement, kept by the server; none when missing. */
  readonly statementMs?: number;
  /** Longest time that the server keeps a transaction in which nothing happens; no limit when missing. */
  readonly idleInTransactionMs?: number;
}

/** An open connection to a server that takes writes. */
export interface PostgresConnection {
  readonly client: pg.Client;
  readonly host: PostgresHost;
  /** Says good-bye; closes the socket whatever the server does. */
  end(): Promise<void>;
  /** Closes the socket at once. */
  destroy(): void;
}

/** None of the servers of the URL takes writes at the moment; `cause` is the most telling of their errors. */
export class NoPrimaryError extends Error {
  override readonly name = 'NoPrimaryError';
}

/** What a server that only reads gives as the SQLSTATE of a refused write. */
export const readOnlyState = '25006';

/** Idle time after which the kernel asks whether the other side is still there; it gives up about 10 s later. */
const keepAliveMs = 10_000;
const farewellMs = 1_000;

/**
 * Opens connections to whichever server of a database URL takes writes. node-postgres knows one server only. The one that was
 * right last time is asked first.
 */
export class PostgresConnector {
  readonly #target: PostgresTarget;
  readonly #limits: ConnectionLimits;
  #preferred = 0;

  /** Throws ConfigError when `url` is no database URL. */
  constructor(url: string, limits: ConnectionLimits) {
    this.#target = parsePostgresUrl(url);
    this.#limits = limits;
  }

  /** The servers, for logs and sentences. */
  get place(): string {
    return this.#target.hosts.map(({ name }) => name).join(', ');
  }

  /**
   * A connection that breaks while it is made is made again, as long as that takes no longer than one that hangs. Throws what the
   * server says when there is one server only, else NoPrimaryError.
   */
  async connect(): Promise<PostgresConnection> {
    const deadline = performance.now() + this.#limits.connectMs;
    for (let round = 1; ; round++) {
      try {
        return await this.#connectOnce();
      } catch (error) {
        if (round === rounds || performance.now() >= deadline || !isBroken(error)) throw error;
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
    const said = errors.map(({ host, error }) => `${host.name}: ${sentenceOf(error)}`).join('; ');
    // A server that has answered tells more than one that has not: a wrong password is not a matter of waiting.
    const cause = (
      errors.find(({ error }) => error instanceof pg.DatabaseError) ??
      errors.find(({ error }) => tlsFaultOf(error) !== null) ??
      errors[0]
    )?.error;
    throw new NoPrimaryError(said, { cause });
  }

  async #connectTo(host: PostgresHost): Promise<PostgresConnection> {
    const { connectMs, statementMs, idleInTransactionMs } = this.#limits;
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: host.url,
      ssl: this.#target.tls,
      stream: () => socket,
      types: { getTypeParser },
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      ...(statementMs === undefined ? {} : { statement_timeout: statementMs }),
      ...(idleInTransactionMs === undefined ? {} : { idle_in_transaction_session_timeout: idleInTransactionMs }),
    });
    const told = watchSettings(client);
    // What happens to a connection without a query shows in its next one; without a listener it would end the process.
    client.on('error', () => {});
    const destroy = (): void => {
      socket.destroy();
    };
    const timer = setTimeout(() => socket.destroy(new ConnectTimeoutError(connectMs)), connectMs);
    try {
      await client.connect();
      if (this.#target.mustTakeWrites) await assertTakesWrites(client, told);
    } catch (error) {
      destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    const end = async (): Promise<void> => {
      const late = setTimeout(destroy, farewellMs);
      await client.end().catch(() => {});
      clearTimeout(late);
    };
    return { client, host, end, destroy };
  }
}

class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
  readonly code = 'ETIMEDOUT';

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
  }
}

/** Two connections that break at once are chance; three are a server that is not well. */
const rounds = 3;

/** Whether the connection was there and was cut: unlike a refusal, a second attempt may succeed at once. */
function isBroken(error: unknown): boolean {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (code === 'ECONNRESET' || code === 'EPIPE' || /Connection terminated/.test(String(message))) return true;
  return error instanceof NoPrimaryError && cause !== undefined && isBroken(cause);
}

/** The settings that the server tells by itself while it lets us in, from now on. */
function watchSettings(client: pg.Client): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  const { connection } = client as unknown as { connection: EventEmitter };
  connection.on('parameterStatus', (message: { parameterName: string; parameterValue: string }) =>
    settings.set(message.parameterName, message.parameterValue),
  );
  return settings;
}

/** A standby, or a primary that was told not to write: the server took us in all the same. */
async function assertTakesWrites(client: pg.Client, told: ReadonlyMap<string, string>): Promise<void> {
  // A proxy in between may keep them to itself.
  const settings = ['in_hot_standby', 'default_transaction_read_only'].map((name) => told.get(name));
  if (settings.every((value) => value === 'off')) return;
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only');
  if (rows[0]?.transaction_read_only !== 'on') return;
  throw new NoPrimaryError('accepts no writes: a standby, or set to read-only');
}

function sentenceOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  return String(message || code || error);
}

const int8 = 20;
const int8Array = 1016;
const textArray: number = 1009;

/** As node-postgres does, but int8 is a number: all of ours stay below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === int8) return Number;
  if (oid === int8Array) {
    const parse = pg.types.getTypeParser(textArray, 'text') as (value: string) => (string | null)[];
    return (value) => parse(value).map((item) => (item === null ? null : Number(item)));
  }
  return pg.types.getTypeParser(oid, format as 'text');
}

import {
  type ClientConfigurationInput,
  createPool,
  type DatabasePool,
  type DatabasePoolConnection,
  type DatabaseTransactionConnection,
} from 'slonik';
import { sparesConnection } from './sqlstate.ts';

/** An error is passed as a result, because slonik closes the connection of work that throws: the next one would log in first, in 20 ms. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown };

/**
 * Connections for as many callers as `ConnectionGate` admits. A caller gets the free connection that was used last: Postgres keeps catalog rows,
 * functions and plans per connection, and slonik's own pool would use all of its connections in turn, so that each stays cold.
 * Hence there is a pool of slonik's per connection.
 */
export class ConnectionPool {
  readonly #pools: readonly DatabasePool[];
  /** The one that was used last is at the end. */
  readonly #free: DatabasePool[];

  private constructor(pools: readonly DatabasePool[]) {
    this.#pools = pools;
    this.#free = pools.toReversed();
  }

  /** Connections are opened by their first use. */
  static async create(size: number, options: ClientConfigurationInput): Promise<ConnectionPool> {
    const open = async (): Promise<DatabasePool> => {
      const pool = await createPool('postgres://', { ...options, maxPoolSize: 1 });
      // slonik emits 'error' when Postgres closes an idle connection; the next query opens a new one.
      pool.on('error', () => {});
      return pool;
    };
    return new ConnectionPool(await Promise.all(Array.from({ length: size }, open)));
  }

  /** Runs `work` with a connection, which is closed if `work` throws. */
  async connect<T>(work: (connection: DatabasePoolConnection) => Promise<T>): Promise<T> {
    const pool = this.#free.pop();
    if (!pool) throw new Error('More callers than connections');
    try {
      return await pool.connect(work);
    } finally {
      this.#free.push(pool);
    }
  }

  /** Runs `work` with a connection, which stays open unless the error of `work` says that it cannot be used any more. */
  async run<T>(work: (connection: DatabasePoolConnection) => Promise<T>): Promise<T> {
    const outcome = await this.connect(async (connection): Promise<Outcome<T>> => {
      try {
        return { value: await work(connection) };
      } catch (error) {
        if (!sparesConnection(error)) throw error;
        return { error };
      }
    });
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  /** Runs `work` in a transaction, which its error rolls back. */
  transaction<T>(work: (tx: DatabaseTransactionConnection) => Promise<T>): Promise<T> {
    return this.run((connection) => connection.transaction((tx) => untilSettled(tx, work)));
  }

  state(): { acquired: number; idle: number } {
    const states = this.#pools.map((pool) => pool.state());
    return {
      acquired: states.reduce((sum, { acquiredConnections }) => sum + acquiredConnections, 0),
      idle: states.reduce((sum, { idleConnections }) => sum + idleConnections, 0),
    };
  }

  async end(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.end()));
  }
}

/**
 * Runs `work`, after which the transaction takes no more statements. Of parallel work that has failed, the rest may go on: its statements must
 * not be part of the next transaction on the connection.
 */
async function untilSettled<T>(
  tx: DatabaseTransactionConnection,
  work: (tx: DatabaseTransactionConnection) => Promise<T>,
): Promise<T> {
  let isOpen = true;
  const guarded = new Proxy(tx, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (!isOpen) throw new Error('The transaction has ended');
        return member.apply(target, args);
      };
    },
  });
  try {
    return await work(guarded);
  } finally {
    isOpen = false;
  }
}

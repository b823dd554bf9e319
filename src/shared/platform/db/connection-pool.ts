import {
  type ClientConfigurationInput,
  createPool,
  type DatabasePool,
  type DatabasePoolConnection,
  type DatabaseTransactionConnection,
} from 'slonik';
import { sparesConnection } from './sqlstate.ts';

/** slonik closes the connection of work that throws, and the next caller would need 20 ms to log in. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown };

/**
 * A caller of `ConnectionGate` gets the free connection that was used last: Postgres keeps catalog rows, functions and plans per
 * connection, and slonik's own pool would use all in turn, so that each stays cold. Therefore each connection has its own slonik pool.
 */
export class ConnectionPool {
  readonly #pools: readonly DatabasePool[];
  /** The last used pool is at the end. */
  readonly #free: DatabasePool[];

  private constructor(pools: readonly DatabasePool[]) {
    this.#pools = pools;
    this.#free = pools.toReversed();
  }

  static async create(size: number, options: ClientConfigurationInput): Promise<ConnectionPool> {
    const open = async (): Promise<DatabasePool> => {
      const pool = await createPool('postgres://', { ...options, maxPoolSize: 1 });
      // slonik emits 'error' when Postgres closes an idle connection; the next query opens a new one.
      pool.on('error', () => {});
      return pool;
    };
    return new ConnectionPool(await Promise.all(Array.from({ length: size }, open)));
  }

  /** Closes the connection if `work` throws. */
  async connect<T>(work: (connection: DatabasePoolConnection) => Promise<T>): Promise<T> {
    const pool = this.#take();
    try {
      const result = await pool.connect(work);
      this.#free.push(pool);
      return result;
    } catch (error) {
      // The next caller of this pool has to log in.
      this.#free.unshift(pool);
      throw error;
    }
  }

  /** Keeps the connection open unless the error of `work` means that it is unusable. */
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

  transaction<T>(work: Work<T>): Promise<T> {
    return this.run((connection) => connection.transaction((tx) => untilSettled(tx, work)));
  }

  /** Logins may fail while open connections work. */
  #take(): DatabasePool {
    const isOpen = (pool: DatabasePool): boolean => {
      const { idleConnections, pendingReleaseConnections } = pool.state();
      return idleConnections + pendingReleaseConnections > 0;
    };
    // An index of -1 takes the last one.
    const [pool] = this.#free.splice(this.#free.findLastIndex(isOpen), 1);
    if (!pool) throw new Error('More callers than connections');
    return pool;
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

type Work<T> = (tx: DatabaseTransactionConnection) => Promise<T>;

/** After parallel work has failed, its remaining statements must not become part of the next transaction on the connection. */
async function untilSettled<T>(tx: DatabaseTransactionConnection, work: Work<T>): Promise<T> {
  let isOpen = true;
  const begun = new Set<Promise<unknown>>();
  const run = (name: string | symbol, method: (...args: unknown[]) => unknown, args: readonly unknown[]): unknown => {
    if (!isOpen) throw new Error('The transaction has ended');
    const [nested, ...more] = args;
    const result =
      name === 'transaction'
        ? method.call(
            tx,
            (inner: DatabaseTransactionConnection) => untilSettled(inner, nested as Work<unknown>),
            ...more,
          )
        : method.apply(tx, [...args]);
    if (result instanceof Promise) {
      const forget = (): void => void begun.delete(result);
      begun.add(result);
      result.then(forget, forget);
    }
    return result;
  };
  const guarded = new Proxy(tx, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function'
        ? (...args: unknown[]): unknown => run(name, member as (...args: unknown[]) => unknown, args)
        : member;
    },
  });
  try {
    return await work(guarded);
  } finally {
    isOpen = false;
    await Promise.allSettled(begun);
  }
}

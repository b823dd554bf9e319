import type { DatabasePoolConnection, Interceptor } from 'slonik';

type Check = (connection: DatabasePoolConnection) => Promise<void>;

/** Each connection of a pool must pass the checks before its first use. */
export class ConnectionChecks {
  readonly #checks: Check[] = [];
  #passed = new WeakSet<object>();

  /** Applies to open and future connections. */
  add(check: Check): void {
    this.#checks.push(check);
    this.#passed = new WeakSet();
  }

  /** slonik closes a connection if this throws. */
  readonly interceptor: Interceptor = {
    name: 'connection-checks',
    afterPoolConnection: async (_context, connection) => {
      if (this.#checks.length === 0) return null;
      const client = clientOf(connection);
      if (this.#passed.has(client)) return null;
      const passed = this.#passed;
      for (const check of this.#checks) await check(connection);
      passed.add(client);
      return null;
    },
  };
}

/**
 * The client stays the same while the connection is open, unlike slonik's wrapper. slonik does not declare the property; if a release lacks
 * it, every use is checked.
 */
function clientOf(connection: DatabasePoolConnection): object {
  return (connection as DatabasePoolConnection & { readonly connection?: object }).connection ?? connection;
}

import { LRUCache } from 'lru-cache';
import type { DatabasePoolConnection, Interceptor } from 'slonik';

type Check = (connection: DatabasePoolConnection) => Promise<void>;

/** Checks that each connection of a pool must pass before its first use. */
export class ConnectionChecks {
  readonly #checks: Check[] = [];
  /** Ids of connections. One that is forgotten is checked again. */
  readonly #passed: LRUCache<string, true>;

  constructor(poolSize: number) {
    this.#passed = new LRUCache({ max: 4 * poolSize });
  }

  /** Applies to all connections from now on, and to the ones that are open. */
  add(check: Check): void {
    this.#checks.push(check);
    this.#passed.clear();
  }

  /** slonik closes a connection if this throws. */
  readonly interceptor: Interceptor = {
    name: 'connection-checks',
    afterPoolConnection: async ({ connectionId }, connection) => {
      if (this.#checks.length === 0 || this.#passed.get(connectionId)) return null;
      for (const check of this.#checks) await check(connection);
      this.#passed.set(connectionId, true);
      return null;
    },
  };
}

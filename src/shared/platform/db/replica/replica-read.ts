import { setTimeout as delay } from 'node:timers/promises';
import { AcquireTimeoutError } from '../connection-gate.ts';
import type { Database } from '../database.ts';
import { queryLimit } from '../postgres-driver.ts';
import type { Queryable } from '../sql.ts';
import { isRecoveryConflict } from '../sqlstate.ts';
import { type PrimaryPosition, type ReplicaPosition, readReplicaPosition, unfitness } from './replica-position.ts';

/** Why a read continues on the primary. */
export interface Lost {
  readonly reason: 'behind' | 'busy' | 'conflict' | 'failed' | 'moved';
  readonly error?: unknown;
}

type Server = 'primary' | 'replica';

/** Pauses between polls of a replica that is behind, usually by a few ms. A read waits no longer than their sum. */
const waitsMs = [1, 2, 4, 8, 15, 20] as const;
const positionLimitMs = 1_000;
/** An overdue statement is repeated on the primary. Statements that read in chunks are far shorter. */
const statementLimitMs = 5_000;

const readMethods = [
  ...['any', 'anyFirst', 'exists', 'many', 'manyFirst', 'maybeOne', 'maybeOneFirst'],
  ...['one', 'oneFirst', 'query', 'record'],
] as readonly Exclude<keyof Queryable, 'transaction'>[];

/** Each statement of a read sees data at least as new as the one before. */
export class ReplicaRead {
  readonly #primary: Database;
  readonly #replica: Database;
  readonly #least: PrimaryPosition;
  readonly #onServed: (server: Server) => void;
  readonly #onLost: (lost: Lost) => void;
  /** The server that responded. Another one may be further behind. */
  #server: string | null = null;
  #isLost = false;
  #isCounted = false;

  constructor(parts: {
    primary: Database;
    replica: Database;
    least: PrimaryPosition;
    onServed: (server: Server) => void;
    onLost: (lost: Lost) => void;
  }) {
    this.#primary = parts.primary;
    this.#replica = parts.replica;
    this.#least = parts.least;
    this.#onServed = parts.onServed;
    this.#onLost = parts.onLost;
  }

  /** Transactions run on the primary. */
  get queryable(): Queryable {
    const methods: Record<string, unknown> = {
      transaction: this.#primary.transaction,
    };
    for (const name of readMethods) {
      methods[name] = (query: never) =>
        this.#run((db) => (db[name] as unknown as (query: never) => Promise<unknown>)(query));
    }
    return methods as unknown as Queryable;
  }

  async #run<T>(query: (db: Queryable) => Promise<T>): Promise<T> {
    if (!this.#isLost) {
      try {
        const answer = await this.#replica.onConnection((connection) => this.#ask(connection, query));
        if ('value' in answer) {
          this.#count('replica');
          return answer.value;
        }
        this.#lose(answer);
      } catch (error) {
        // Any error counts: one that the replica did not cause recurs on the primary.
        this.#lose({ reason: reasonOf(error), error });
      }
    }
    this.#count('primary');
    return query(this.#primary);
  }

  /** Throws only errors after which the connection is closed. */
  async #ask<T>(connection: Queryable, query: (db: Queryable) => Promise<T>): Promise<{ value: T } | Lost> {
    const position = await this.#reached(connection);
    if (unfitness(position, this.#least))
      return { reason: 'failed', error: new Error(unfitness(position, this.#least) as string) };
    if (position.replayed < this.#least.flushed) return { reason: 'behind' };
    if (this.#server !== null && this.#server !== position.server) return { reason: 'moved' };
    this.#server = position.server;
    return { value: await queryLimit.run(statementLimitMs, () => query(connection)) };
  }

  /** Waits until the server has reached the position or the time is over. */
  async #reached(connection: Queryable): Promise<ReplicaPosition> {
    const ask = () => queryLimit.run(positionLimitMs, () => readReplicaPosition(connection));
    let position = await ask();
    for (const ms of waitsMs) {
      if (position.replayed >= this.#least.flushed || unfitness(position, this.#least)) break;
      await delay(ms);
      position = await ask();
    }
    return position;
  }

  #lose(lost: Lost): void {
    // Statements of one read may run concurrently.
    if (!this.#isLost) this.#onLost(lost);
    this.#isLost = true;
  }

  #count(server: Server): void {
    if (!this.#isCounted) this.#onServed(server);
    this.#isCounted = true;
  }
}

function reasonOf(error: unknown): Lost['reason'] {
  if (error instanceof AcquireTimeoutError) return 'busy';
  return isRecoveryConflict(error) ? 'conflict' : 'failed';
}

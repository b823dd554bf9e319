import type pg from 'pg';
import { OperatorError } from '../errors/errors.ts';
import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import { tlsFaultOf } from '../tls/trust.ts';
import { PostgresConnector } from './postgres-connector.ts';
import { passingReason } from './sqlstate.ts';

/** How a process that starts reaches Postgres. */
export interface PostgresStart extends StartWait {
  readonly url: string;
  /** Longest time to connect to one host, in milliseconds. */
  readonly connectMs: number;
}

/** The server, or the way to it, refused the connection for a reason that does not pass. */
class ConnectionRefusedError extends OperatorError {
  override readonly name = 'ConnectionRefusedError';
}

/**
 * Runs `work` with a connection of its own, closed at the end, as soon as Postgres takes writes; again when it goes away
 * meanwhile. Throws PartUnavailableError, and what `work` throws besides.
 */
export async function withPostgresAtStart<T>(
  start: PostgresStart,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const connector = new PostgresConnector(start.url, { connectMs: start.connectMs });
  const attempt = async (): Promise<T> => {
    const connection = await connector.connect().catch((error: unknown) => {
      throw passingReason(error) === null
        ? new ConnectionRefusedError(tlsFaultOf(error) ?? (error as Error).message, { cause: error })
        : error;
    });
    try {
      return await work(connection.client);
    } finally {
      await connection.end();
    }
  };
  return untilAvailable({ name: `Postgres at ${connector.place} (HOLDFAST_DATABASE_URL)`, attempt, judge }, start);
}

/** Runs a step of the start that uses the pool; again while Postgres is away. The step must be one that can be repeated. */
export function repeatAtStart<T>(step: () => Promise<T>, wait: StartWait): Promise<T> {
  return untilAvailable({ name: 'Postgres (HOLDFAST_DATABASE_URL)', attempt: step, judge }, wait);
}

function judge(error: unknown): Verdict | null {
  if (error instanceof ConnectionRefusedError) return { final: error.message };
  const reason = passingReason(error);
  return reason === null ? null : { passing: reason };
}

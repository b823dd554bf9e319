import type pg from 'pg';
import { OperatorError } from '../errors/errors.ts';
import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import { tlsFaultOf } from '../tls/certificates.ts';
import { PostgresConnector } from './postgres-connector.ts';
import { isStatementTimeout, passingReason, refusedParameter } from './sqlstate.ts';

export interface PostgresStart extends StartWait {
  readonly url: string;
  /** The limit of a connection to one host. */
  readonly connectMs: number;
}

class ConnectionRefusedError extends OperatorError {
  override readonly name = 'ConnectionRefusedError';
}

/** A user, or a foreign limit, has cancelled a statement. Repeated work without limits would be cancelled again. */
class StatementCancelledError extends OperatorError {
  override readonly name = 'StatementCancelledError';
}

/**
 * Runs `work` as soon as Postgres accepts writes, and again if Postgres becomes unavailable meanwhile. `observer` opens a second
 * connection. Throws PartUnavailableError.
 */
export async function withPostgresAtStart<T>(
  start: PostgresStart,
  work: (client: pg.Client, observer: () => Promise<pg.Client>) => Promise<T>,
): Promise<T> {
  const connector = new PostgresConnector(start.url, { connectMs: start.connectMs });
  const attempt = async (reached: () => void): Promise<T> => {
    const connection = await connector.connect().catch((error: unknown) => {
      throw passingReason(error) === null
        ? new ConnectionRefusedError(tlsFaultOf(error) ?? (error as Error).message, { cause: error })
        : error;
    });
    reached();
    const opened = [connection];
    const observer = async (): Promise<pg.Client> => {
      const second = await connector.connect();
      opened.push(second);
      return second.client;
    };
    try {
      return await work(connection.client, observer);
    } catch (error) {
      if (!isStatementTimeout(error)) throw error;
      throw new StatementCancelledError(`Postgres has cancelled a statement: ${(error as Error).message}`, {
        cause: error,
      });
    } finally {
      await Promise.all(opened.map((each) => each.end()));
    }
  };
  return untilAvailable({ name: `Postgres at ${connector.address} (HOLDFAST_DATABASE_URL)`, attempt, judge }, start);
}

/** The step uses the pool and must be repeatable. */
export function repeatAtStart<T>(step: () => Promise<T>, wait: StartWait): Promise<T> {
  return untilAvailable({ name: 'Postgres (HOLDFAST_DATABASE_URL)', attempt: step, judge }, wait);
}

function judge(error: unknown): Verdict | null {
  if (error instanceof StatementCancelledError) return null;
  if (error instanceof ConnectionRefusedError) return { final: error.message };
  const parameter = refusedParameter(error);
  if (parameter !== null)
    return {
      final:
        `A pooler refuses the parameter ${parameter}. Add ignore_startup_parameters = statement_timeout,` +
        'idle_in_transaction_session_timeout to the configuration of PgBouncer, and set both for the database user: see docs/deploy.md',
    };
  const reason = passingReason(error);
  return reason === null ? null : { passing: reason };
}

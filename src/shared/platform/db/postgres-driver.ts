import { AsyncLocalStorage } from 'node:async_hooks';
import { createDriverFactory, type DriverClientEventEmitter, type DriverFactory } from '@slonik/driver';
import type { QueryConfig } from 'pg';
import { BackendTerminatedError } from 'slonik';
import { copyOf, cutText } from '../text/cut-text.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { currentSpan, inSpan } from '../tracing/tracing.ts';
import { type PostgresConnection, type PostgresConnector, readOnlyState } from './postgres-connector.ts';
import { type RaisedMessage, watchRaised } from './raised-messages.ts';
import { assertCommitted, RolledBackError } from './rolled-back-error.ts';

/** The statement may have taken effect. */
class QueryDeadlineError extends Error {
  override readonly name = 'QueryDeadlineError';

  constructor(limitMs: number) {
    super(`no answer from Postgres within ${limitMs} ms`);
  }
}

/** Postgres can no longer run the prepared statement, and has not run it. */
class StaleStatementError extends Error {
  override readonly name = 'StaleStatementError';

  constructor(cause: unknown) {
    super('a prepared statement cannot be run any more', { cause });
  }
}

/** Postgres has admitted this pool before and refuses it now: while a password is changed, or after a failover to another server. */
class LoginRefusedError extends Error {
  override readonly name = 'LoginRefusedError';
}

/** Shortens the limit, in ms, of the statements in this context. */
export const queryLimit = new AsyncLocalStorage<number>();

interface Member {
  readonly host: string;
  readonly drop: (reason: Error) => void;
}

/** Postgres closes the connection after these errors: shutdown, crash, startup, dropped database, idle session or transaction. */
const fatalStates = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', '25P03', '25P04']);

const failedTransactionState = '25P02';

/** A prepared statement does not exist, or already exists. */
const staleStatementStates = new Set(['26000', '42P05']);

/**
 * A statement without a response within `queryMs`, a lost connection, a stale prepared statement, or a server that accepts no writes closes
 * this connection and all idle ones to the same server. `onRaised` gets messages of statements after their transactions. The end of a
 * transaction in which a statement has failed throws RolledBackError.
 */
export function createPostgresDriver(
  connector: PostgresConnector,
  queryMs: number,
  onRaised: (message: RaisedMessage) => void,
): DriverFactory {
  const idle = new Set<Member>();
  let hasLoggedIn = false;

  /** A fault usually affects all connections to a server: each idle one would fail a call to find out. */
  const dropIdle = (host: string, reason: Error): void => {
    for (const member of [...idle]) if (member.host === host) member.drop(reason);
  };

  return createDriverFactory(async () => ({
    createPoolClient: async ({ clientEventEmitter }) => {
      let open: PostgresConnection | undefined;
      /** The first error since the beginning of the transaction, or since a return to a savepoint. */
      let failure: unknown;
      const connection = (): PostgresConnection => {
        if (!open) throw new Error('the connection is not open');
        return open;
      };
      return {
        connect: async () => {
          open = await connector.connect().catch((error: unknown) => {
            throw hasLoggedIn ? new LoginRefusedError((error as Error).message, { cause: error }) : error;
          });
          hasLoggedIn = true;
          watch(open, clientEventEmitter, idle, dropIdle);
          watchRaised(open.client, onRaised);
        },
        end: () => connection().end(),
        query: async (text, values, options) => {
          const { client, host, isPooled, destroy } = connection();
          // Behind a pooler, another session may lack the statement, or have another release's statement under this name.
          const name = isPooled ? undefined : options?.name;
          const limitMs = Math.min(queryLimit.getStore() ?? queryMs, queryMs);
          try {
            // The extended protocol accepts only one statement, with or without values.
            const query: QueryConfig & { queryMode: 'extended' } = {
              text,
              values: values ?? [],
              queryMode: 'extended',
              ...(name === undefined ? {} : { name }),
            };
            const { command, fields, rowCount, rows } = await inStatementSpan(text, host.name, () =>
              withTimeout(
                client.query(query),
                limitMs,
                () => new BackendTerminatedError(new QueryDeadlineError(limitMs)),
              ),
            );
            assertCommitted(text, { command }, failure);
            if (command === 'START' || command === 'ROLLBACK') failure = undefined;
            return {
              command: command as 'SELECT',
              fields: fields.map(({ dataTypeID, name }) => ({ dataTypeId: dataTypeID, name })),
              rowCount,
              rows,
            };
          } catch (error) {
            if (error instanceof BackendTerminatedError) {
              // A connection that still owes a response cannot send another query.
              report(clientEventEmitter, error);
              destroy();
              dropIdle(host.name, error);
              throw error;
            }
            const { code } = error as { code?: unknown };
            if (code === failedTransactionState) throw new RolledBackError(failure);
            failure ??= error;
            if (name !== undefined && hasStaleStatement(error)) {
              // The statement would fail on the connection for ever, and other statements may fail as well.
              const stale = new BackendTerminatedError(new StaleStatementError(error));
              report(clientEventEmitter, stale);
              destroy();
              dropIdle(host.name, stale);
              throw stale;
            }
            const isFatal = fatalStates.has(String(code));
            if (code === readOnlyState || isFatal) dropIdle(host.name, error as Error);
            throw isFatal ? new BackendTerminatedError(error as Error) : error;
          }
        },
        stream: () => {
          throw new Error('streaming rows is not supported');
        },
      };
    },
  }));
}

/** A migration may have changed the type of a returned column, or the server may have forgotten the statement. */
function hasStaleStatement(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown };
  // The message may be in the language of the server, so it is not compared.
  return staleStatementStates.has(String(code)) || (code === '0A000' && routine === 'RevalidateCachedQuery');
}

function watch(
  { client, destroy, host }: PostgresConnection,
  events: DriverClientEventEmitter,
  idle: Set<Member>,
  dropIdle: (host: string, reason: Error) => void,
): void {
  const drop = (reason: Error): void => {
    idle.delete(member);
    destroy();
    report(events, reason);
  };
  const member: Member = { host: host.name, drop };
  events.on('acquire', () => idle.delete(member));
  events.on('release', () => {
    // A ROLLBACK may have been cancelled.
    if (client.getTransactionStatus() === 'I') idle.add(member);
    else drop(new Error('the connection was released within a transaction'));
  });
  events.on('destroy', () => idle.delete(member));
  client.on('error', (error) => {
    const lost = new BackendTerminatedError(error);
    drop(lost);
    dropIdle(host.name, lost);
  });
}

/** Makes slonik discard the connection. Otherwise slonik would first try to roll back on it. */
function report(events: DriverClientEventEmitter, error: Error): void {
  // slonik listens only while it owns the connection.
  if (events.listenerCount('error') > 0) events.emit('error', error);
}

const maxTextChars = 2_000;

/**
 * The name in a statement's first comment, e.g. `updates.insertEnded`, replaces its text, which would otherwise be most of the sent data.
 * Texts without a name have only placeholders for values.
 */
function inStatementSpan<T>(text: string, host: string, work: () => Promise<T>): Promise<T> {
  if (currentSpan() === null) return work();
  // The driver itself puts a query into "select exists".
  const [, name, verb] = /^\s*(?:select exists\(\s*)?(?:\/\* ([\w.]+) \*\/|([a-z]+))/i.exec(text) ?? [];
  const attributes = {
    'db.system.name': 'postgresql',
    'server.address': host,
    ...(name === undefined ? { 'db.query.text': cutText(text.trim(), maxTextChars) } : {}),
  };
  // The title is kept until the span is sent.
  const title = copyOf(`postgres ${name ?? verb?.toLowerCase() ?? 'statement'}`);
  return inSpan(title, { role: 'client', attributes }, work);
}

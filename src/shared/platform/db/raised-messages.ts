import type { EventEmitter } from 'node:events';
import type pg from 'pg';

/** A statement, or one of its triggers, has raised it for the client. */
export interface RaisedMessage {
  readonly message: string;
  readonly detail: string;
}

/** A property of pg 8.23 that its types lack. Without it, watching fails at once. */
interface WithConnection {
  readonly connection: EventEmitter;
}

/**
 * Reports messages with a detail, after their transaction, so that others see its changes. Also reports those of transactions that were
 * rolled back, or whose outcome is unknown.
 */
export function watchRaised(client: pg.Client, onRaised: (message: RaisedMessage) => void): void {
  let raised: RaisedMessage[] = [];
  const notify = (): void => {
    if (raised.length === 0) return;
    const ended = raised;
    raised = [];
    for (const message of ended) onRaised(message);
  };
  client.on('notice', ({ message, detail }) => {
    if (message !== undefined && detail !== undefined) raised.push({ message, detail });
  });
  const { connection } = client as unknown as WithConnection;
  connection.on('readyForQuery', ({ status }: { status: string }) => {
    if (status === 'I') notify();
  });
  client.once('end', notify);
}

import type { EventEmitter } from 'node:events';
import type pg from 'pg';

/** A message that a statement, or one of its triggers, has raised for the client. */
export interface RaisedMessage {
  readonly message: string;
  readonly detail: string;
}

/** A property of pg 8.23 that its types lack. Without it, watching fails at once. */
interface WithConnection {
  readonly connection: EventEmitter;
}

/**
 * Calls `onRaised` for each message with a detail that statements of the connection raise, once their transaction has ended, so that
 * others see its changes. Also reports messages of transactions that were rolled back, or whose outcome is unknown.
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

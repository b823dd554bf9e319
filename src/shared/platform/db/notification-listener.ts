import { outsideCalls } from '../lifecycle/outside-calls.ts';
import { listen } from './notification-channel.ts';
import type { PostgresConnection, PostgresConnector } from './postgres-connector.ts';

const retryMs = 1_000;

export interface Notifications {
  close(): Promise<void>;
}

/**
 * Uses a separate connection. Notifications are lost between two connections, and always behind a transaction pooler. Listeners must
 * therefore also poll from time to time.
 */
export function listenOn(
  connector: PostgresConnector,
  channel: string,
  onMessage: (payload: string) => void,
): Notifications {
  let connection: PostgresConnection | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const retry = (): void => {
    connection = null;
    if (!isClosed) timer ??= setTimeout(connect, retryMs).unref();
  };
  const connect = (): void => {
    timer = undefined;
    void open().catch(retry);
  };
  const open = async (): Promise<void> => {
    const opened = await connector.connect();
    if (isClosed) return opened.end();
    connection = opened;
    opened.client.on('notification', (message) => {
      if (message.channel === channel && message.payload !== undefined) onMessage(message.payload);
    });
    opened.client.once('end', retry);
    try {
      await listen(opened, channel);
    } catch (error) {
      opened.destroy();
      throw error;
    }
  };
  outsideCalls(connect);
  return {
    close: async () => {
      isClosed = true;
      clearTimeout(timer);
      await connection?.end();
    },
  };
}

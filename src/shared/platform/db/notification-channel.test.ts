import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { NotificationChannel } from './notification-channel.ts';
import { listenOn } from './notification-listener.ts';
import type { PostgresConnection, PostgresConnector } from './postgres-connector.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Its first connection answers the login and nothing more. */
function databaseThatHangs() {
  const statements: string[][] = [];
  const connect = async (): Promise<PostgresConnection> => {
    const sent: string[] = [];
    const isHung = statements.push(sent) === 1;
    const client = Object.assign(new EventEmitter(), {
      escapeIdentifier: (name: string) => name,
      query: (text: string) => {
        sent.push(text);
        return isHung ? new Promise(() => {}) : Promise.resolve();
      },
    });
    const destroy = (): void => void client.emit('end');
    return { client, destroy, end: async () => destroy() } as unknown as PostgresConnection;
  };
  return { connector: { connect } as PostgresConnector, statements };
}

test('a channel connects again if Postgres does not answer LISTEN', async () => {
  const { connector, statements } = databaseThatHangs();
  const channel = new NotificationChannel(connector, 'c');
  const onOpen = jest.fn();
  channel.listen({ onMessage: () => {}, onOpen, onLost: () => {} });
  const sent = channel.send(['payload']).catch((error: Error) => error.message);
  channel.open();
  await jest.advanceTimersByTimeAsync(5_500);
  expect(await sent).toMatch(/LISTEN/);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(statements).toEqual([['listen c'], ['listen c']]);
  expect(onOpen).toHaveBeenCalledTimes(1);
  await channel.close();
});

test('a listener connects again if Postgres does not answer LISTEN', async () => {
  const { connector, statements } = databaseThatHangs();
  const notifications = listenOn(connector, 'c', () => {});
  await jest.advanceTimersByTimeAsync(7_000);
  expect(statements).toEqual([['listen c'], ['listen c']]);
  await notifications.close();
});

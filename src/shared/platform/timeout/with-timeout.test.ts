import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { withTimeout } from './with-timeout.ts';

const late = (): Error => new Error('late');
const never = new Promise<never>(() => {});

test('gives what the work gives, and leaves no timer behind', async () => {
  const set = jest.spyOn(globalThis, 'setTimeout');
  const cleared = jest.spyOn(globalThis, 'clearTimeout');
  expect(await withTimeout(Promise.resolve(7), 60_000, late)).toBe(7);
  await expect(withTimeout(Promise.reject(new Error('its own')), 60_000, late)).rejects.toThrow('its own');
  expect(cleared.mock.calls.map(([timer]) => timer)).toEqual(set.mock.results.map(({ value }) => value));
  jest.restoreAllMocks();
});

test('rejects once the limit is over', async () => {
  await expect(withTimeout(never, 5, late)).rejects.toThrow('late');
});

test('a failure of work that is late is nobody’s', async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  await expect(withTimeout(promise, 1, late)).rejects.toThrow('late');
  reject(new Error('too late'));
  await new Promise(setImmediate);
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test('what came while the process stood still is in time', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    using socket = disposable(connect((server.address() as AddressInfo).port, '127.0.0.1'));
    using sender = disposable((await accepted)[0]);
    if (socket.connecting) await once(socket, 'connect');
    const answer = withTimeout(once(socket, 'data'), 20, late);
    sender.write('here');
    for (const end = performance.now() + 100; performance.now() < end; );
    expect(String((await answer)[0])).toBe('here');
  } finally {
    server.close();
  }
});

function disposable(socket: Socket): Socket & Disposable {
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}

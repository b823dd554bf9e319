import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import { withTimeout } from './with-timeout.ts';

const late = (): Error => new Error('late');
const never = new Promise<never>(() => {});

test('settles as the work does and clears its timer', async () => {
  const set = jest.spyOn(globalThis, 'setTimeout');
  const cleared = jest.spyOn(globalThis, 'clearTimeout');
  expect(await withTimeout(Promise.resolve(7), 60_000, late)).toBe(7);
  await expect(withTimeout(Promise.reject(new Error('its own')), 60_000, late)).rejects.toThrow('its own');
  expect(cleared.mock.calls.map(([timer]) => timer)).toEqual(set.mock.results.map(({ value }) => value));
  jest.restoreAllMocks();
});

test('rejects after the time limit', async () => {
  await expect(withTimeout(never, 5, late)).rejects.toThrow('late');
});

test('ignores a late failure of the work', async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  await expect(withTimeout(promise, 1, late)).rejects.toThrow('late');
  reject(new Error('too late'));
  await new Promise(setImmediate);
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test('accepts a result that arrived while the process was blocked', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    using socket = disposable(connect((server.address() as AddressInfo).port, '127.0.0.1'));
    using sender = disposable((await accepted)[0]);
    if (socket.connecting) await once(socket, 'connect');
    const received = withTimeout(once(socket, 'data'), 20, late);
    sender.write('here');
    for (const end = performance.now() + 100; performance.now() < end; );
    expect(String((await received)[0])).toBe('here');
  } finally {
    server.close();
  }
});

function disposable(socket: Socket): Socket & Disposable {
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}

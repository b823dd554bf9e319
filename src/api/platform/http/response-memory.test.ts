import { expect, test } from '@jest/globals';
import { ResponseMemory } from './response-memory.ts';

const mib = 1024 * 1024;

test('results of other requests wait until the first response is sent', async () => {
  const room = new ResponseMemory(10 * mib);
  const [first, second] = [room.open(), room.open()];
  await first.hold(6 * mib, 'a');
  const order: string[] = [];
  const waiting = second.hold(6 * mib, 'b').then(() => order.push('held'));
  await new Promise(setImmediate);
  order.push('sent');
  first.end();
  await waiting;
  expect(order).toEqual(['sent', 'held']);
});

test('a request that holds memory does not wait for more', async () => {
  const request = new ResponseMemory(10 * mib).open();
  await request.hold(6 * mib, 'a');
  await request.hold(4 * mib, 'a');
  await expect(request.hold(1 * mib, 'a')).rejects.toMatchObject({ status: 413 });
});

test('concurrent calls of one request do not wait for each other', async () => {
  const request = new ResponseMemory(10 * mib).open();
  const results = await Promise.allSettled([6, 6, 6].map((size) => request.hold(size * mib, 'a')));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
});

test('the memory of a request is released when it ends, even if the reservation is still pending', async () => {
  const room = new ResponseMemory(10 * mib);
  const [first, gone, last] = [room.open(), room.open(), room.open()];
  await first.hold(10 * mib, 'a');
  const waiting = gone.hold(10 * mib, 'a');
  gone.end();
  first.end();
  await expect(waiting).rejects.toMatchObject({ status: 503 });
  await last.hold(10 * mib, 'a');
});

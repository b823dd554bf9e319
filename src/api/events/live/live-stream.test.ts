import { expect, test } from '@jest/globals';
import { LiveStream, type PlacedMessage } from './live-stream.ts';

const gone = new AbortController().signal;
const soon = { isSlow: false };

const changed = (topic: string, updateId?: string) =>
  ({ topic, kind: 'update.started', ...(updateId === undefined ? {} : { updateId }) }) as const;

test('sends each message once, and the position of the last notification only with the last message', async () => {
  let position = 'a';
  const stream = new LiveStream(() => position);
  stream.add(changed('x', '1'), soon);
  stream.add(changed('x', '1'), soon);
  stream.add(changed('x', '2'), soon);
  position = 'b';
  const read = await stream.read(gone);
  expect(read).toEqual([
    { id: 'a', message: changed('x', '1') },
    { id: 'b', message: changed('x', '2') },
  ]);
});

test('keeps a bounded number of messages for slow readers, and then one refetch message', async () => {
  const stream = new LiveStream(() => 'a');
  for (let n = 0; n < 64; n++) stream.add(changed('x', String(n)), soon);
  expect(stream.unreadSince).toBe(Number.POSITIVE_INFINITY);
  expect(await stream.read(gone)).toHaveLength(64);
  for (let n = 0; n < 1_000; n++) stream.add(changed('x', String(n)), soon);
  const read = (await stream.read(gone)) as readonly PlacedMessage[];
  expect(read.length).toBeLessThanOrEqual(64);
  expect(read[0]).toEqual({ id: 'a', message: { topic: null, kind: 'refetch' } });
});

test('ends with its reason for current and later readers, and with nothing for disconnected ones', async () => {
  const stream = new LiveStream(() => 'a');
  const waiting = stream.read(gone);
  stream.end('rights');
  stream.end('stopping');
  expect(await waiting).toBe('rights');
  expect(await stream.read(gone)).toBe('rights');
  const closing = new AbortController();
  const left = new LiveStream(() => 'a').read(closing.signal);
  closing.abort();
  expect(await left).toBeNull();
});

import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { ChannelListener, NotificationChannel } from '../../../shared/platform/db/notification-channel.ts';
import { LiveHub } from './live-hub.ts';
import type { PlacedMessage } from './live-stream.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test('a stream that began before the first connection refetches once there is one', async () => {
  const rights: unknown[] = [];
  let listener: ChannelListener | undefined;
  const channel = {
    open: () => {},
    listen: (added: ChannelListener) => {
      listener = added;
    },
  };
  const hub = new LiveHub({ channel: channel as unknown as NotificationChannel, logger: {} as never }, (changed) =>
    rights.push(changed),
  );
  const kinds = async () => {
    const read = stream.read(new AbortController().signal);
    await jest.advanceTimersByTimeAsync(2_000);
    return ((await read) as readonly PlacedMessage[]).map(({ message }) => message.kind);
  };
  const topics = [{ of: 'stack', id: 's', name: 'acme/proj/dev' } as const];
  const begun = hub.subscribe(topics, null, () => {});
  await jest.advanceTimersByTimeAsync(3_000);
  const stream = await begun;
  expect(await kinds()).toEqual(['ready']);
  listener?.onOpen(false);
  expect(stream.size).toBe(1);
  expect(await kinds()).toEqual(['refetch']);
  expect(rights).toEqual([null]);
  hub.drain();
});

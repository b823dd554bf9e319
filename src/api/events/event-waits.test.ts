import { expect, test } from '@jest/globals';
import { formatBatch, type NotificationKind } from '../../shared/events/live/notification.ts';
import type { ChannelListener, NotificationChannel } from '../../shared/platform/db/notification-channel.ts';
import { EventWaits } from './event-waits.ts';

/** Longer than any test. */
const endlessMs = 3_600_000;
const updates = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'] as const;

function scene() {
  let listener: ChannelListener | undefined;
  const channel = {
    listen: (given: ChannelListener) => {
      listener = given;
    },
    open: () => {},
  } as unknown as NotificationChannel;
  const waits = new EventWaits(channel);
  const ended: string[] = [];
  const wait = async (updateId: string, ms = endlessMs, gone = new AbortController().signal): Promise<void> => {
    const { changed, end } = waits.next(updateId, ms, gone);
    await changed;
    end();
    ended.push(updateId);
  };
  const notify = (updateId: string, kind: NotificationKind = 'events.appended') =>
    listener?.onMessage(
      formatBatch({
        id: 'a.1',
        isPartial: false,
        notifications: [{ kind, organizationId: null, stackId: null, updateId }],
      }),
    );
  return { waits, wait, notify, ended };
}

test('events, and the end of the update, wake the calls that wait for it, and no others', async () => {
  const { ended, notify, wait, waits } = scene();
  const [first, second, other] = [wait(updates[0]), wait(updates[0]), wait(updates[1])];
  notify(updates[0]);
  await Promise.all([first, second]);
  expect(ended).toEqual([updates[0], updates[0]]);
  notify(updates[1], 'update.ended');
  await other;
  waits.drain();
});

test('what changes between the beginning of the wait and its end is not missed', async () => {
  const { notify, waits } = scene();
  const wait = waits.next(updates[0], endlessMs, new AbortController().signal);
  notify(updates[0]);
  await wait.changed;
  wait.end();
});

test('a wait ends after its time, with its client, and with the process', async () => {
  const { wait, waits } = scene();
  await wait(updates[0], 1);
  await wait(updates[0], endlessMs, AbortSignal.abort());
  const client = new AbortController();
  const left = wait(updates[0], endlessMs, client.signal);
  client.abort();
  await left;
  const waiting = wait(updates[0]);
  waits.drain();
  await waiting;
  await wait(updates[0]);
});

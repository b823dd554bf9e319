import { expect, test } from '@jest/globals';
import { EventFeed, type EventPage } from './event-feed.ts';

const pageSize = 200;

/** An update whose events arrive between reads, some of them late. */
function arriving(rounds: readonly (readonly number[])[]): { feed: EventFeed; reads: (string | null)[] } {
  const stored: number[] = [...(rounds[0] ?? [])];
  const reads: (string | null)[] = [];
  let round = 0;
  const feed = new EventFeed({
    fetchPage: async (cursor): Promise<EventPage> => {
      reads.push(cursor);
      const after = stored.filter((sequence) => cursor === null || sequence > Number(cursor)).sort((a, b) => a - b);
      const items = after.slice(0, pageSize).map((sequence) => ({ sequence, timestamp: 1, stdoutEvent: {} }));
      return { items, next: after.length > pageSize ? String(items.at(-1)?.sequence) : null };
    },
    isRunning: () => round + 1 < rounds.length,
    wait: async () => {
      round += 1;
      stored.push(...(rounds[round] ?? []));
    },
  });
  return { feed, reads };
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);

test('reads all events of an ended update once', async () => {
  const { feed, reads } = arriving([range(0, 450)]);
  await feed.run(() => {}, new AbortController().signal);
  expect(feed.progress.eventCount).toBe(450);
  expect(feed.isCaughtUp).toBe(true);
  expect(reads).toEqual([null, '199', '399']);
});

test('continues while the update runs, and finds batches that arrive late', async () => {
  const { feed } = arriving([
    range(0, 390),
    range(440, 490),
    [...range(390, 440), ...range(490, 700)],
    range(700, 720),
  ]);
  let changes = 0;
  await feed.run(() => (changes += 1), new AbortController().signal);
  expect(feed.progress.eventCount).toBe(720);
  expect(changes).toBeGreaterThanOrEqual(4);
});

test('stops when its signal is aborted', async () => {
  const stop = new AbortController();
  const { feed, reads } = arriving([range(0, 1000)]);
  await feed.run(() => stop.abort(), stop.signal);
  expect(reads).toHaveLength(1);
});

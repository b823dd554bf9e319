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
  expect(feed).toMatchObject({ isCaughtUp: true, isOver: true, hasGaps: false });
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

test('finds a batch that the CLI repeats long after later ones: at once, or at the end', async () => {
  const late = range(300, 350);
  const rest = [...range(0, 300), ...range(350, 1_200)];
  const { feed, reads } = arriving([rest, late, [], range(1_200, 1_210)]);
  const counts: number[] = [];
  await feed.run(() => counts.push(feed.progress.eventCount), new AbortController().signal);
  expect(counts).toContain(1_200);
  expect(feed).toMatchObject({ isOver: true, hasGaps: false, progress: { eventCount: 1_210 } });
  // One older page, and the newest two.
  expect(reads).toEqual(
    [null, 199, 449, 649, 849, 1049, 199, 849, 1049, 849, 1049, 849, 1049].map((after) => after && String(after)),
  );

  const atEnd = arriving([rest, range(1_200, 1_210), [...late, ...range(1_210, 1_220)]]);
  await atEnd.feed.run(() => {}, new AbortController().signal);
  expect(atEnd.feed).toMatchObject({ isOver: true, hasGaps: false, progress: { eventCount: 1_220 } });
});

test('reads, at the end, only the pages that lack events once more', async () => {
  // The CLI has given one batch up; others come at the end.
  const early = [...range(0, 300), ...range(350, 6_000), ...range(6_500, 20_000)];
  const { feed, reads } = arriving([early, [...range(6_000, 6_500), ...range(20_000, 20_010)]]);
  await feed.run(() => {}, new AbortController().signal);
  expect(feed).toMatchObject({ isOver: true, hasGaps: true, progress: { eventCount: 19_960 } });
  const whole = Math.ceil(early.length / pageSize);
  expect(reads.slice(whole)).toEqual(['199', '5849', '6049', '6249', '6449', '19749', '19949']);
});

test('says so if events never arrive, and does not wait for them', async () => {
  const { feed } = arriving([range(0, 500), range(600, 700), range(700, 720)]);
  await feed.run(() => {}, new AbortController().signal);
  expect(feed).toMatchObject({ isOver: true, hasGaps: true, progress: { eventCount: 620 } });
});

test('is over once the end was seen and the last events were read, not before', async () => {
  const { feed } = arriving([range(0, 250), range(250, 260), range(260, 270)]);
  const seen: unknown[] = [];
  await feed.run(
    () => seen.push(`${feed.progress.eventCount} ${feed.isCaughtUp} ${feed.isOver}`),
    new AbortController().signal,
  );
  expect(seen).toEqual([
    '200 false false',
    '250 false false',
    '250 true false',
    '260 true false',
    '270 true false',
    '270 true true',
  ]);
});

test('stops when its signal is aborted', async () => {
  const stop = new AbortController();
  const { feed, reads } = arriving([range(0, 1000)]);
  await feed.run(() => stop.abort(), stop.signal);
  expect(reads).toHaveLength(1);
});

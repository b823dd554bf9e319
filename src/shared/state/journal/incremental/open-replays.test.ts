import { expect, test } from '@jest/globals';
import { until } from '../../../../../testkit/until.ts';
import type { OpenReplay } from '../replay/runner/replay-runner.ts';
import { OpenReplays, type WarmReplay } from './open-replays.ts';

function replayOf(bytes: number): WarmReplay & { isClosed: boolean } {
  const kept = {
    isClosed: false,
    bytes,
    progress: { entries: 1, lastSequenceId: 1, hasGap: false, unknownKinds: null },
    replay: {
      close: () => {
        kept.isClosed = true;
      },
    } as OpenReplay,
  };
  return kept;
}

const keep = (open: OpenReplays, id: string, keep: WarmReplay | null) =>
  open.use(id, async (kept) => ({ result: kept, keep }));

test('a kept replay is passed to the next caller, and closed when it is not kept again', async () => {
  const open = new OpenReplays();
  const kept = replayOf(10);
  await keep(open, 'a', kept);
  expect([open.bytes, open.has('a')]).toEqual([10, true]);
  expect((await keep(open, 'a', { ...kept, bytes: 20 }))?.replay).toBe(kept.replay);
  expect([open.bytes, kept.isClosed]).toEqual([20, false]);
  await keep(open, 'a', null);
  expect([open.bytes, open.has('a'), kept.isClosed]).toEqual([0, false, true]);
  open.close();
});

test('a caller that fails loses the replay', async () => {
  const open = new OpenReplays();
  const kept = replayOf(10);
  await keep(open, 'a', kept);
  const failed = open.use('a', () => Promise.reject(new Error('failed')));
  await expect(failed).rejects.toThrow('failed');
  expect([kept.isClosed, await keep(open, 'a', null)]).toEqual([true, null]);
  open.close();
});

test('callers of one update wait for each other, callers of other updates do not', async () => {
  const open = new OpenReplays();
  const { promise, resolve } = Promise.withResolvers<void>();
  const order: string[] = [];
  const first = open.use('a', async () => {
    await promise;
    order.push('first');
    return { result: null, keep: null };
  });
  const others = [2, 3].map((number) =>
    open.use('a', async () => {
      order.push(`number ${number}`);
      return { result: null, keep: null };
    }),
  );
  await keep(open, 'b', null);
  expect([order, open.has('a')]).toEqual([[], true]);
  resolve();
  await Promise.all([first, ...others]);
  expect(order).toEqual(['first', 'number 2', 'number 3']);
  open.close();
});

test('when it is full, newcomers are refused for a while and none is evicted', async () => {
  const open = new OpenReplays({ maxBytes: 25, maxBytesEach: 20, idleMs: 60_000 });
  const [first, second] = [replayOf(15), replayOf(15)];
  await keep(open, 'a', first);
  expect(open.admits('b', 10)).toBe(true);
  await keep(open, 'b', second);
  expect([open.bytes, first.isClosed, second.isClosed]).toEqual([15, false, true]);
  expect([open.admits('b', 0), open.admits('c', 11), open.admits('d', 10)]).toEqual([false, false, true]);
  open.close();
  expect(first.isClosed).toBe(true);
});

test('one that grows above its limit is closed', async () => {
  const open = new OpenReplays({ maxBytesEach: 20 });
  const kept = replayOf(20);
  await keep(open, 'a', kept);
  await keep(open, 'a', { ...kept, bytes: 21 });
  expect([open.bytes, open.has('a'), kept.isClosed, open.admits('a', 0)]).toEqual([0, false, true, false]);
  open.close();
});

test('replays that are not used are dropped after a while, and refused updates may try again', async () => {
  const open = new OpenReplays({ maxBytesEach: 20, idleMs: 20 });
  const kept = replayOf(10);
  await keep(open, 'a', kept);
  open.refuse('b');
  expect(open.admits('b', 0)).toBe(false);
  await until(() => kept.isClosed, 'it is dropped', { everyMs: 5 });
  expect([open.bytes, open.has('a'), open.admits('b', 0)]).toEqual([0, false, true]);
  open.close();
});

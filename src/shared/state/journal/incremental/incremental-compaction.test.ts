import { expect, test } from '@jest/globals';
import { until } from '../../../../../testkit/until.ts';
import { isFirst, runFirst } from '../../../platform/db/connection-gate.ts';
import { createLogger } from '../../../platform/logger/logger.ts';
import { currentRequest, forRequest } from '../../../platform/logger/request-lines.ts';
import { IncrementalCompaction } from './incremental-compaction.ts';

const logger = createLogger({ level: 'silent' });

function slices() {
  const started: string[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const incremental = new IncrementalCompaction((updateId) => {
    started.push(updateId);
    const end = Promise.withResolvers<void>();
    ends.push(end);
    return end.promise;
  }, logger);
  const untilStarted = async (count: number): Promise<void> => {
    await until(() => started.length >= count, `${count} compactions have begun`, { everyMs: 1 });
  };
  return { incremental, started, ends, untilStarted };
}

test('one update at a time, each once for all requests before its compaction', async () => {
  const { incremental, started, ends, untilStarted } = slices();
  for (const id of ['a', 'b', 'a', 'b', 'c']) incremental.request(id);
  await untilStarted(1);
  expect([started, incremental.waiting]).toEqual([['a'], 2]);
  // Entries have arrived since it began.
  incremental.request('a');
  ends[0]?.resolve();
  for (let round = 2; round <= 4; round++) {
    await untilStarted(round);
    ends[round - 1]?.resolve();
  }
  await incremental.close();
  expect([started, incremental.waiting]).toEqual([['a', 'b', 'c', 'a'], 0]);
});

test('a failed compaction does not block the next one', async () => {
  const { incremental, started, ends, untilStarted } = slices();
  incremental.request('a');
  incremental.request('b');
  await untilStarted(1);
  ends[0]?.reject(new Error('no connection'));
  await untilStarted(2);
  ends[1]?.resolve();
  await incremental.close();
  expect(started).toEqual(['a', 'b']);
});

test('closing waits for the running compaction and starts no other', async () => {
  const { incremental, started, ends, untilStarted } = slices();
  incremental.request('a');
  incremental.request('b');
  await untilStarted(1);
  let isClosed = false;
  const closing = incremental.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  ends[0]?.resolve();
  await closing;
  incremental.request('c');
  expect([started, incremental.waiting]).toEqual([['a'], 0]);
});

test('a compaction belongs to no call, whoever requests it', async () => {
  const seen: unknown[] = [];
  const incremental = new IncrementalCompaction(async (updateId) => {
    seen.push([updateId, isFirst(), currentRequest()]);
  }, logger);
  runFirst(() => forRequest('a call', () => incremental.request('a')));
  await until(() => seen.length > 0, 'the compaction');
  expect(seen).toEqual([['a', false, undefined]]);
  await incremental.close();
});

import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { AppContext } from '../../shared/context.ts';
import { startScrub } from './scrub-loop.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A worker whose first read of a document never ends. Returns the gauges by their names. */
function startHanging(readStatistics: () => Promise<{ damaged: number; oldestSeconds: number }>) {
  const gauges = new Map<string, () => number>();
  const none = async () => ({ damaged: 0, oldestSeconds: 0 });
  const hang = () => new Promise<never>(() => {});
  startScrub({
    config: { scrub: { bytesPerSecond: 1_000, periodSeconds: 3_600 } },
    documentChecks: { readStatistics },
    eventSegments: { readStatistics: none },
    policyArchives: { readStatistics: none },
    journalSnapshots: { claimChecks: hang },
    lifecycle: { onClose: () => {} },
    logger: { warn: () => {} },
    metrics: {
      gauge: (name: string, _help: string, read: () => number) => gauges.set(name, read),
      counter: () => {},
      tasksPostponed: { labels: () => ({ inc: () => {} }) },
    },
    readOnly: { isFenced: false, fenceSignal: new AbortController().signal },
  } as unknown as AppContext);
  return gauges;
}

test('a worker says nothing about the oldest check before it knows it, and does not wait for its first read to end', async () => {
  const gauges = startHanging(async () => ({ damaged: 2, oldestSeconds: 4_000_000 }));
  const read = (): number | undefined => gauges.get('holdfast_documents_oldest_check_age_seconds')?.();
  expect(read()).toBeNaN();
  await jest.advanceTimersByTimeAsync(5_000);
  expect(read()).toBeCloseTo(4_000_000, -1);
  expect(gauges.get('holdfast_documents_damaged')?.()).toBe(2);
});

test('the age grows while it cannot be read', async () => {
  let isDown = false;
  const gauges = startHanging(async () => {
    if (isDown) throw new Error('no connection');
    return { damaged: 0, oldestSeconds: 1_000 };
  });
  await jest.advanceTimersByTimeAsync(5_000);
  isDown = true;
  await jest.advanceTimersByTimeAsync(3_600_000);
  expect(gauges.get('holdfast_documents_oldest_check_age_seconds')?.()).toBeCloseTo(4_600, -1);
});

import { expect, test } from '@jest/globals';
import type { Job } from '../../src/shared/jobs/job-list.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { InProcessDispatcher } from '../../src/workers/platform/in-process-dispatcher.ts';
import { until } from '../support/until.ts';
import {
  compactionJob,
  type DispatcherUnderTestOptions,
  describeDispatcher,
  gate,
  handlersFor,
  idOf,
  largeBytes,
  longWaitMs,
} from './dispatcher-suite.ts';

function open(
  { work, onEnded, waitMs = longWaitMs, concurrency = 4 }: DispatcherUnderTestOptions,
  patience: { readonly patienceMs?: number } = {},
): InProcessDispatcher {
  return new InProcessDispatcher(handlersFor(work), {
    ...patience,
    concurrency: { small: concurrency, large: concurrency },
    largeBytes,
    waitMs,
    logger: createLogger({ level: 'silent' }),
    onEnded: onEnded ?? (async () => {}),
  });
}

describeDispatcher(
  'the process itself',
  async (options) => {
    const dispatcher = open(options);
    return { dispatcher, look: async () => {}, close: () => dispatcher.close() };
  },
  // Its jobs begin at once.
  2_000,
);

test('while calls wait, only one job runs at a time that no call waits for', async () => {
  const [awaited, later] = [gate(), gate()];
  const dispatcher = open({ work: (job) => (idOf(job) === 'awaited' ? awaited : later).pass(), concurrency: 4 });
  const first = dispatcher.run(compactionJob('awaited'));
  for (let job = 0; job < 6; job++) await dispatcher.enqueue(compactionJob('later'));
  await until(() => later.arrived() === 1, 'one of them runs');
  // There is still a place for two more calls.
  const others = [1, 2].map(() => dispatcher.run(compactionJob('awaited')));
  await until(() => awaited.arrived() === 3, 'the calls have not waited for the others');
  expect(later.arrived()).toBe(1);
  awaited.open();
  await Promise.all([first, ...others]);
  await until(() => later.arrived() === 4, 'all places are taken');
  later.open();
  await dispatcher.close();
});

test('a background job begins after the jobs of a burst of calls', async () => {
  const [awaited, later] = [gate(), gate()];
  const work = (job: Job): Promise<void> => (idOf(job) === 'awaited' ? awaited : later).pass();
  const dispatcher = open({ work }, { patienceMs: 60_000 });
  const first = dispatcher.run(compactionJob('awaited'));
  await dispatcher.enqueue(compactionJob('later'));
  const second = dispatcher.run(compactionJob('awaited'));
  await until(() => awaited.arrived() === 2, 'both calls are served');
  expect(later.arrived()).toBe(0);
  awaited.open();
  await Promise.all([first, second]);
  await until(() => later.arrived() === 1, 'the later job runs');
  later.open();
  await dispatcher.close();
});

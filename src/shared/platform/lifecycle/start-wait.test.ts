import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createLogger } from '../logger/logger.ts';
import { untilAvailable } from './start-wait.ts';

const wait = { waitMs: 500, logger: createLogger({ level: 'silent' }) };
const judge = () => ({ passing: 'it is away' });

test('work that loses the part after longer than the wait is repeated', async () => {
  let attempts = 0;
  const attempt = async (reached: () => void): Promise<string> => {
    reached();
    if (++attempts > 1) return 'done';
    await sleep(700);
    throw new Error('lost');
  };
  expect(await untilAvailable({ name: 'Postgres', attempt, judge }, wait)).toBe('done');
});

test.each([
  ['is never reached', () => {}],
  ['is reached and lost each time', (reached: () => void) => reached()],
])('a part that %s is given up', async (_how, begin) => {
  const started = performance.now();
  const attempt = async (reached: () => void): Promise<never> => {
    begin(reached);
    throw new Error('away');
  };
  await expect(untilAvailable({ name: 'Postgres', attempt, judge }, wait)).rejects.toThrow(
    'Postgres is not available: it is away; gave up after 0.5 s',
  );
  expect(performance.now() - started).toBeGreaterThan(490);
});

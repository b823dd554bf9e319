import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Database } from '../../shared/platform/db/database.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { changePeople, patientLockMs } from './people-lock.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** The first change holds the lock; the others are of the same organization or people. */
function begin() {
  const query = async () => undefined;
  const db = { inTransaction: (work: (tx: object) => unknown) => work({ query }) } as unknown as Database;
  const held = Promise.withResolvers<void>();
  const change = (work: () => Promise<unknown>, waitMs?: number) => changePeople(db, 'sign-in', work, waitMs);
  const first = change(() => held.promise);
  return { change, first, release: held.resolve };
}

test('changes that nobody can repeat wait for each other as long as for the lock', async () => {
  const { change, first, release } = begin();
  const patient = change(async () => 'done', patientLockMs);
  await jest.advanceTimersByTimeAsync(patientLockMs);
  release();
  await first;
  expect(await patient).toBe('done');
});

test('a change that nobody can repeat is not refused because many wait', async () => {
  const { change, first, release } = begin();
  const all = Promise.all(Array.from({ length: 150 }, (_, at) => change(async () => at, patientLockMs)));
  await jest.advanceTimersByTimeAsync(patientLockMs);
  release();
  await first;
  expect(await all).toHaveLength(150);
});

test('other changes wait ten seconds', async () => {
  const { change, first, release } = begin();
  let isRefused = false;
  const refused = expect(
    change(async () => 'done').finally(() => {
      isRefused = true;
    }),
  ).rejects.toThrow(UnavailableError);
  await jest.advanceTimersByTimeAsync(9_999);
  expect(isRefused).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  await refused;
  release();
  await first;
});

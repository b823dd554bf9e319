import { expect, test } from '@jest/globals';
import { JournalBacklog } from './journal-backlog.ts';

const backlog = () => new JournalBacklog({ entries: 10, bytes: 1_000 }, { entries: 3, bytes: 100 });

test('few entries make nothing due', () => {
  const counts = backlog();
  expect([1, 2, 3].map(() => counts.add('a', 3, 100))).toEqual([false, false, false]);
});

test('the first step is due at its number of entries, the next ones at theirs', () => {
  const counts = backlog();
  expect([9, 1, 2, 1, 3].map((entries) => counts.add('a', entries, 1))).toEqual([false, true, false, true, true]);
});

test('a step is due at its number of bytes, too', () => {
  const counts = backlog();
  expect([999, 1, 99, 1].map((bytes) => counts.add('a', 1, bytes))).toEqual([false, true, false, true]);
});

test('updates are counted apart', () => {
  const counts = backlog();
  expect([counts.add('a', 9, 1), counts.add('b', 9, 1), counts.add('a', 1, 1)]).toEqual([false, false, true]);
});

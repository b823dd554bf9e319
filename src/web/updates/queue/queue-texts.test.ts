import { expect, test } from '@jest/globals';
import { queueTexts } from './texts.tsx';

test('a sum of the loaded page says when there is more', () => {
  expect(queueTexts.sum(1, 0, false)).toBe('1 run holds a lock, none waiting');
  expect(queueTexts.sum(3, 1, false)).toBe('3 runs hold locks, 1 waits');
  expect(queueTexts.sum(150, 50, true)).toBe('At least 150 runs hold locks, 50 wait');
  // The queue goes on after what is loaded.
  expect(queueTexts.sum(200, 0, true)).toBe('At least 200 runs hold locks');
  expect(queueTexts.sum(1, 0, true)).toBe('At least 1 run holds a lock');
});

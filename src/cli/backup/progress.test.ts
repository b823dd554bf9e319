import { expect, test } from '@jest/globals';
import { progressText } from './progress.ts';

test('the time left follows from the speed of the step so far', () => {
  expect(progressText('blobs', { done: 40, total: 100, seconds: 4 })).toBe('blobs: 40 of 100, about 6 s left');
  expect(progressText('blobs', { done: 0, total: 100, seconds: 4 })).toBe('blobs: 0 of 100');
  expect(progressText('blobs', { done: 100, total: 100, seconds: 4 })).toBe('blobs: 100 of 100');
});

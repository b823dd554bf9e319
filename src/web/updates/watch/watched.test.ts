import { expect, test } from '@jest/globals';
import { maxWatched, parseWatched } from './watched.ts';

const stack = { login: 'ada', organization: 'acme', project: 'web', stack: 'prod', updateId: null, endedAt: null };

test.each<[string, unknown, number]>([
  ['a stack', [stack], 1],
  ['an update', [{ ...stack, updateId: 'u', endedAt: '2026-01-01T00:00:00.000Z' }], 1],
  ['something else', { ...stack }, 0],
  ['entries of other shapes', [null, 1, 'text', {}, { ...stack, stack: '' }, { ...stack, updateId: 7 }], 0],
  ['too many', Array.from({ length: 30 }, (_, n) => ({ ...stack, stack: `s${n}` })), maxWatched],
])('of the storage, %s is read as watched stacks', (_, stored, count) => {
  expect(parseWatched(stored)).toHaveLength(count);
});

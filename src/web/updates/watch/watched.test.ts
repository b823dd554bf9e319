import { expect, test } from '@jest/globals';
import { followRename, listWatched, maxWatched, parseWatched, watch } from './watched.ts';

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

test('a watch goes with a renamed stack, also if the server cannot say so at once, and ends with a deleted one', async () => {
  watch(stack);
  await expect(followRename(stack, () => Promise.reject(new Error('503')))).rejects.toThrow('503');
  expect(listWatched()).toEqual([stack]);
  const moved = { ...stack, stack: 'live' };
  await followRename(stack, async () => ({ project: 'web', stack: 'live' }));
  expect(listWatched()).toEqual([moved]);
  await followRename(moved, async () => null);
  expect(listWatched()).toEqual([]);
});

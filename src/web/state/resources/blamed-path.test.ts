import { expect, test } from '@jest/globals';
import { blameOf } from './blamed-path.ts';

const set = (path: string, version: number) => ({ path, version, isExact: true });
const known = [set('inputs.tags.a', 2), set('inputs.tags.b', 5), set('inputs.tagsAll', 9), set('inputs.deep', 3)];

test('the blame of a property is the newest of its contents, or that of its container', () => {
  expect(blameOf(known, 'inputs.tags.a')?.version).toBe(2);
  expect(blameOf(known, 'inputs.tags')?.version).toBe(5);
  expect(blameOf(known, 'inputs.deep.x[0]')?.version).toBe(3);
  expect(blameOf(known, 'inputs.other')).toBeNull();
});

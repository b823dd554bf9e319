import { expect, test } from '@jest/globals';
import { Blame, type ResourceChange } from './blame.ts';

const updated = (version: number, paths: string[], pathCount = paths.length): ResourceChange => ({
  ...{ version, change: 'updated', paths, pathCount },
});
const created = (version: number): ResourceChange => ({ version, change: 'created', paths: null, pathCount: 0 });

function blame(paths: string[], changes: ResourceChange[], knownFrom: number | null = 0) {
  const result = new Blame(paths);
  for (const change of changes) result.add(change);
  return Object.fromEntries(
    result.end(knownFrom).map(({ isExact, path, version }) => [path, isExact ? version : `up to ${version}`]),
  );
}

test('the newest version that changed a property has set it, the creation all others', () => {
  const changes = [
    updated(5, ['inputs.a']),
    updated(4, ['inputs.a', 'inputs.b']),
    created(2),
    updated(1, ['inputs.c']),
  ];
  expect(blame(['inputs.a', 'inputs.b', 'inputs.c'], changes)).toEqual({ 'inputs.a': 5, 'inputs.b': 4, 'inputs.c': 2 });
});

test('a property is set with what contains it, and with what it contains', () => {
  expect(blame(['inputs.tags.Name', 'inputs.tagsAll'], [updated(3, ['inputs.tags']), created(1)])).toEqual({
    'inputs.tags.Name': 3,
    'inputs.tagsAll': 1,
  });
  expect(blame(['inputs.list'], [updated(3, ['inputs.list[0]']), created(1)])).toEqual({ 'inputs.list': 3 });
});

test('what is older than the index, or was left out of it, is only known to be no newer', () => {
  expect(blame(['inputs.a', 'inputs.b'], [updated(9, ['inputs.a'])], 7)).toEqual({
    'inputs.a': 9,
    'inputs.b': 'up to 7',
  });
  expect(blame(['inputs.a', 'inputs.b'], [updated(9, ['inputs.a'], 500), created(3)])).toEqual({
    'inputs.a': 9,
    'inputs.b': 'up to 9',
  });
  expect(blame(['inputs.a'], [], null)).toEqual({ 'inputs.a': 'up to null' });
  const behind = new Blame(['inputs.a'], 4);
  behind.add(created(2));
  expect(behind.end(0)).toEqual([{ path: 'inputs.a', version: 4, isExact: false }]);
});

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
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

test('the newest version that changed a property set it; the creation set all others', () => {
  const changes = [
    updated(5, ['inputs.a']),
    updated(4, ['inputs.a', 'inputs.b']),
    created(2),
    updated(1, ['inputs.c']),
  ];
  expect(blame(['inputs.a', 'inputs.b', 'inputs.c'], changes)).toEqual({ 'inputs.a': 5, 'inputs.b': 4, 'inputs.c': 2 });
});

test('a property is set together with its containers and its contents', () => {
  expect(blame(['inputs.tags.Name', 'inputs.tagsAll'], [updated(3, ['inputs.tags']), created(1)])).toEqual({
    'inputs.tags.Name': 3,
    'inputs.tagsAll': 1,
  });
  expect(blame(['inputs.list'], [updated(3, ['inputs.list[0]']), created(1)])).toEqual({ 'inputs.list': 3 });
});

test('for changes older than the index, or missing from it, only an upper bound is known', () => {
  expect(blame(['inputs.a', 'inputs.b'], [updated(9, ['inputs.a'])], 7)).toEqual({
    'inputs.a': 9,
    'inputs.b': 'up to 7',
  });
  expect(blame(['inputs.a', 'inputs.b'], [updated(9, ['inputs.a'], 500), created(3)])).toEqual({
    'inputs.a': 9,
    'inputs.b': 'up to 9',
  });
  expect(blame(['inputs.a'], [], null)).toEqual({ 'inputs.a': 'up to null' });
  const behind = new Blame(['inputs.a']);
  behind.addUnknown(4);
  behind.add(created(2));
  expect(behind.end(0)).toEqual([{ path: 'inputs.a', version: 4, isExact: false }]);
});

/** Whether the value at `outer` contains the one at `inner`. */
function covers(outer: string, inner: string): boolean {
  if (outer.endsWith('…')) return inner.startsWith(outer.slice(0, -1));
  return inner === outer || (inner.startsWith(outer) && /^[.[]/.test(inner.slice(outer.length)));
}

test('each property is set by the newest change above or below it, for any names', () => {
  const path = fc
    .array(fc.constantFrom('a', 'b', '.', '[', 'é'), { minLength: 1, maxLength: 5 })
    .chain((parts) => fc.constantFrom(parts.join(''), `${parts.join('')}…`));
  const paths = fc.array(path, { maxLength: 12 });
  fc.assert(
    fc.property(paths, fc.array(paths, { maxLength: 6 }), (properties, changes) => {
      const expected = properties.map((property) => {
        const at = changes.findIndex((changed) =>
          changed.some((each) => covers(each, property) || covers(property, each)),
        );
        return at < 0 ? 'up to 0' : 100 - at;
      });
      const result = new Blame(properties);
      for (const [at, changed] of changes.entries()) result.add(updated(100 - at, changed));
      expect(result.end(0).map(({ isExact, version }) => (isExact ? version : `up to ${version}`))).toEqual(expected);
      expect(result.isDone).toBe(new Set(expected).has('up to 0') === false);
    }),
    { numRuns: 2_000 },
  );
});

test('many changes of other properties cost little, however many properties there are', () => {
  const properties = Array.from({ length: 40_000 }, (_, at) => `inputs.${'p'.repeat(150)}${at}`);
  const began = process.cpuUsage();
  const result = new Blame(properties);
  const changed = Array.from({ length: 50 }, (_, at) => `inputs.${'p'.repeat(149)}q${at}`);
  for (let version = 2_000; version > 0; version--) result.add(updated(version, changed));
  expect(result.end(0)).toHaveLength(40_000);
  const { system, user } = process.cpuUsage(began);
  // 0.3 s, and minutes if each change is compared with each property.
  expect((system + user) / 1000).toBeLessThan(20_000);
});

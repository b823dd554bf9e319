import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { diffJson, isEqual } from './json-diff.ts';

const lines = (before: unknown, after: unknown): unknown[] =>
  diffJson(before, after).changes.map((change) => [change.kind, change.path, change.before, change.after]);

describe('differences of JSON values', () => {
  test('are found property by property', () => {
    const before = { a: 1, tags: { Name: 'x', gone: null }, list: [1, { b: 2 }] };
    const after = { a: 1, tags: { Name: 'y', 'a.b': true }, list: [1, { b: 3 }] };
    expect(lines(before, after)).toEqual([
      ['changed', 'tags.Name', 'x', 'y'],
      ['added', 'tags["a.b"]', undefined, true],
      ['removed', 'tags.gone', null, undefined],
      ['changed', 'list[1].b', 2, 3],
    ]);
  });

  test('of an array are what was added or removed in it', () => {
    expect(lines(['a', 'b', 'c'], ['a', 'x', 'b', 'c'])).toEqual([['added', '[1]', undefined, 'x']]);
    expect(lines([1, 2, 3], [1, 3])).toEqual([['removed', '[1]', 2, undefined]]);
    expect(lines([], [1])).toEqual([['added', '[0]', undefined, 1]]);
  });

  test('show a change of type as one', () => {
    expect(lines({ a: [1] }, { a: { 0: 1 } })).toEqual([['changed', 'a', [1], { 0: 1 }]]);
    expect(lines({ a: '[secret]' }, { a: 'open' })).toEqual([['changed', 'a', '[secret]', 'open']]);
    expect(lines(null, 0)).toEqual([['changed', '', null, 0]]);
  });

  test('leave redacted secrets alone', () => {
    expect(lines({ a: { '[secret]': true } }, { a: '[secret]' })).toEqual([]);
  });

  test('say when there are more than the limit', () => {
    const many = Array.from({ length: 30 }, (_, at) => at);
    expect(
      diffJson(
        many,
        many.map((at) => -at - 1),
        10,
      ),
    ).toMatchObject({ changes: { length: 10 }, isCut: true });
    expect(
      diffJson(
        many,
        many.map((at) => -at - 1),
        30,
      ).isCut,
    ).toBe(false);
  });

  test('are none exactly for equal values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        expect(diffJson(one, structuredClone(one)).changes).toEqual([]);
        expect(diffJson(one, other).changes.length === 0).toBe(isEqual(one, other));
      }),
    );
  });
});

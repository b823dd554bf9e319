import { expect, test } from '@jest/globals';
import { tagsAfterStart } from './start-tags.ts';

test('a start without a wait replaces all tags', () => {
  const given = { a: '2' };
  expect(tagsAfterStart(given, { a: '1', b: '1' }, null)).toEqual({
    tags: given,
    warnings: [],
  });
});

test('a start after a wait makes its own changes only', () => {
  const atArrival = { a: '1', b: '1', c: '1', d: '1' };
  const before = { a: '3', b: '3', d: '1', e: '1' };
  const { tags, warnings } = tagsAfterStart({ a: '2', b: '1', c: '1', f: '1' }, before, atArrival);
  expect({ ...tags }).toEqual({ a: '2', b: '3', e: '1', f: '1' });
  expect(warnings).toEqual(['Tags of the stack were changed while this update waited, and stay so: b, c, e']);
});

test('tags that end as the client has sent them are in its order', () => {
  const given = { a: '1', b: '1', c: '1' };
  for (const atArrival of [null, { b: '1' }])
    expect(JSON.stringify(tagsAfterStart(given, { b: '1', a: '1' }, atArrival))).toBe(
      JSON.stringify({ tags: given, warnings: [] }),
    );
});

test('a start after a wait exceeds no limit', () => {
  const before = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`a${at}`, '1']));
  const of = (given: Record<string, string>) => tagsAfterStart(given, before, {});
  expect({ ...of({ a0: '2' }).tags }).toEqual({ ...before, a0: '2' });
  expect(of({ b: '1' })).toEqual({
    tags: before,
    warnings: ['A stack can have at most 200 tags: its tags were not changed'],
  });
});

test('a name such as __proto__ is an ordinary one', () => {
  const proto = (value: string) => Object.assign(Object.create(null), JSON.parse(`{"__proto__":"${value}"}`));
  const { tags } = tagsAfterStart(proto('1'), proto('2'), proto('1'));
  expect(JSON.stringify(tags)).toBe('{"__proto__":"2"}');
});

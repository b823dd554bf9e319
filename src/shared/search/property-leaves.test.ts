import { expect, test } from '@jest/globals';
import { heapGrowth } from '../../../test/support/heap.ts';
import { diffProperties, listLeafPathsInSlices } from './property-leaves.ts';

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const members = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));
const pathsOf = async (before: unknown, after: unknown): Promise<string[]> =>
  (await diffProperties(json(before), json(after))).map(({ path }) => path);

test('properties are compared leaf by leaf', async () => {
  expect(await listLeafPathsInSlices(json({ a: { b: 1 }, c: [2, { d: 3 }] }))).toEqual(['a.b', 'c[0]', 'c[1].d']);
  expect(await pathsOf({ a: { b: 1, c: 1 } }, { a: { b: 2, c: 1 } })).toEqual(['a.b']);
});

test('of many values, only the outermost are compared', async () => {
  const many = { a: members(2_001, 1), b: 1 };
  expect(await listLeafPathsInSlices(json(many))).toEqual(['a', 'b']);
  expect(await pathsOf(many, { ...many, b: 2 })).toEqual(['b']);
  expect(await pathsOf({ a: 1 }, many)).toEqual(['a', 'b']);
});

test('of too many, none are compared', async () => {
  const many = members(20_001, 1);
  expect(await listLeafPathsInSlices(json(many))).toEqual(['']);
  expect(await pathsOf(many, { ...many, k1: 2 })).toEqual(['']);
  expect(await pathsOf({ k1: 1 }, many)).toEqual(['']);
  expect(await diffProperties(null, json(many))).toMatchObject([{ path: '', before: null }]);
  expect(await pathsOf(many, many)).toEqual([]);
});

test('a long name is read and kept only as far as it is shown, for each of its properties', async () => {
  const name = 'n'.repeat(1_000_000);
  const text = json({ [name]: members(100, 1) });
  let paths: string[] = [];
  const growth = await heapGrowth(async () => {
    paths = await listLeafPathsInSlices(text);
    return paths;
  });
  expect(growth).toBeLessThan(10 * 1024 * 1024);
  expect(paths).toEqual(Array.from({ length: 100 }, () => `${'n'.repeat(199)}…`));
});

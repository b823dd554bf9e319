import { expect, test } from '@jest/globals';
import { slicesOf } from '../../../../test/support/slices-of.ts';
import { diffProperties } from '../../../shared/search/property-leaves.ts';
import { compareResources, readFacts, viewResource } from '../../../shared/search/resource-facts.ts';
import { canonicalOf, isSameInStacks } from './canonical-resource.ts';

// Counts the time slices of the work, between which other requests are served: about one per 128 KiB.

const stack = { organization: 'org', project: 'shop', stack: 'prod' };
const secret = `{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"x"}`;
const listOf = (count: number, value: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => value(at)).join(',');
const manyInputs = (note: string): string => `"inputs":{${listOf(250_000, (at) => `"k${at}":"${note}"`)}}`;
const shapes: Readonly<Record<string, (note: string) => string>> = {
  inputs: manyInputs,
  secrets: (note) => `"inputs":{"note":"${note}",${listOf(30_000, (at) => `"s${at}":${secret}`)}}`,
  members: (note) => listOf(250_000, (at) => `"m${at}":"${note}"`),
  references: (note) => `"dependencies":[${listOf(60_000, (at) => `"urn:pulumi:${note}::shop::a:b:C::c${at}"`)}]`,
};

function resource(shape: string, note: string): Buffer {
  return Buffer.from(`{"urn":"urn:pulumi:${note}::shop::a:b:C::c","type":"a:b:C",${shapes[shape]?.(note)}}`);
}

test.each(Object.keys(shapes))('a large resource is read and compared in many time slices: %s', async (shape) => {
  const [before, after] = [resource(shape, 'dev'), resource(shape, 'prod')];
  const least = Math.floor(Math.min(before.length, after.length) / (256 * 1024));
  expect(least).toBeGreaterThan(7);
  expect(await slicesOf(() => viewResource(after))).toBeGreaterThan(least);
  const [was, is] = [await viewResource(before), await viewResource(after)];
  expect(await slicesOf(() => canonicalOf(is, true))).toBeGreaterThan(least);
  // Of more than 20,000 properties, only the first ones are read.
  expect(await slicesOf(() => compareResources(was, is))).toBeGreaterThan(4);
});

test('the URN of the stack in large values does not tell them apart, wherever a slice ends', async () => {
  const [before, after] = ['dev', 'prod'].map((note) => resource('references', note)) as [Buffer, Buffer];
  const [was, is] = [await viewResource(before), await viewResource(after)];
  expect((await canonicalOf(was, false)).digest).toBe((await canonicalOf(is, false)).digest);
  expect((await compareResources(was, is)).paths).toEqual([]);
  const other = Buffer.from(after.toString().replace('::c59999"', '::c59998"'));
  expect((await compareResources(was, await viewResource(other))).paths).toEqual(['dependencies']);
  expect((await readFacts(is, 'digest', stack)).dependencies).toHaveLength(2_000);
});

test('of a large list of properties, differing ones are found in many time slices', async () => {
  const [before, after] = ['dev', 'prod'].map((note) => Buffer.from(`{${manyInputs(note)}}`)) as [Buffer, Buffer];
  expect(await slicesOf(() => diffProperties(before, after))).toBeGreaterThan(8);
  expect(await slicesOf(() => isSameInStacks('inputs', before, after))).toBeGreaterThan(8);
});

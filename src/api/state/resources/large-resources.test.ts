import { expect, test } from '@jest/globals';
import { slicesOf } from '../../../../test/support/slices-of.ts';
import { diffProperties } from '../../../shared/search/property-leaves.ts';
import { compareResources, readFacts, viewResource } from '../../../shared/search/resource-facts.ts';
import { canonicalOf, isSameInStacks } from './canonical-resource.ts';
import { repairPendingSteps } from './pending-operations.ts';
import { readRootOutputs } from './root-outputs.ts';

// Counts the time slices of the work, between which other requests are served: about one per 128 KiB.

const mib = 1024 * 1024;
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
  // Only the first of more than 20,000 properties are read.
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

/** A document in chunks of 1 MiB. Resources and pending operations are raw JSON. */
async function* documentOf(resources: readonly string[], operations: readonly string[] = []): AsyncGenerator<Buffer> {
  const text = `{"version":3,"deployment":{"resources":[${resources}],"pending_operations":[${operations}]}}`;
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += mib) yield bytes.subarray(at, at + mib);
}
const rootUrn = 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev';
const rootText = `{"urn":"${rootUrn}","type":"pulumi:pulumi:Stack"`;

test('the outputs of a stack are found among large resources in many time slices', async () => {
  const members = shapes['members']?.('x') ?? '';
  const child = `{"urn":"u","type":"a:b:C","parent":"${rootUrn}",${members}}`;
  const root = `${rootText},${members},"outputs":{"a":1}}`;
  let outputs: Buffer | null = null;
  const slices = await slicesOf(async () => {
    outputs = (await readRootOutputs(documentOf([child, root]))).outputs;
  });
  expect(String(outputs)).toBe('{"a":1}');
  expect(slices).toBeGreaterThan((child.length + root.length) / (256 * 1024));
});

test('large pending operations are read and repaired in many time slices', async () => {
  const resource = `{"urn":"u","type":"a:b:C","custom":true,${shapes['members']?.('x')}}`;
  const operation = `{"resource":${resource},${shapes['members']?.('x')},"type":"creating"}`;
  const document = () => documentOf([`${rootText}}`], [operation]);
  const read = await slicesOf(async () => {
    await repairPendingSteps(document, (step) => {
      expect(step).toMatchObject({ operation: 'creating', urn: 'u', type: 'a:b:C', id: '', isCustom: true });
      return null;
    });
  });
  const repaired = await slicesOf(async () => {
    const { imported, parts } = await repairPendingSteps(document, () => ({ action: 'import', id: 'i-1' }));
    expect(imported).toBe(1);
    const texts = parts.filter((part) => Buffer.isBuffer(part)).map(String);
    expect(texts.some((text) => text.includes(`${resource.slice(0, -1)},"id":"i-1"}`))).toBe(true);
  });
  // The document, its operation and the resource in it.
  const least = (2 * operation.length + resource.length) / (256 * 1024);
  expect(read).toBeGreaterThan(least);
  expect(repaired).toBeGreaterThan(least);
});

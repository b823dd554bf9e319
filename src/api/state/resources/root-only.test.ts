import { expect, test } from '@jest/globals';
import { isRootOnly } from './root-only.ts';

const root = { urn: 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev', type: 'pulumi:pulumi:Stack' };
const other = { urn: 'urn:pulumi:dev::proj::a:b:C::c', type: 'a:b:C' };

async function* inChunks(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function checkInChunks(document: object | string): Promise<boolean> {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const [first, ...others] = await Promise.all([1, 7, 100_000].map((size) => isRootOnly(inChunks(text, size))));
  for (const result of others) expect(result).toBe(first);
  return first as boolean;
}

test.each<[string, object | string, boolean]>([
  ['the root alone', { version: 3, deployment: { resources: [root] } }, true],
  ['no pending operations', { deployment: { resources: [root], pending_operations: [] } }, true],
  ['null pending operations', { deployment: { pending_operations: null, resources: [root] } }, true],
  ['a long root', { deployment: { resources: [{ outputs: { a: 'x'.repeat(5_000) }, ...root }] } }, true],
  ['an escaped type', '{"deployment":{"resources":[{"type" : "pulumi\\u003apulumi:Stack"}]}}', true],
  ['a pending operation', { deployment: { resources: [root], pending_operations: [{ resource: other }] } }, false],
  ['one under the other name', { deployment: { resources: [root], pendingOperations: [{ resource: other }] } }, false],
  ['another resource alone', { deployment: { resources: [other] } }, false],
  ['another after the root', { deployment: { resources: [root, other] } }, false],
  ['another before the root', { deployment: { resources: [other, root] } }, false],
  ['two roots', { deployment: { resources: [root, root] } }, false],
  ['the type at a deeper level', { deployment: { resources: [{ outputs: root }] } }, false],
  ['a longer type', { deployment: { resources: [{ type: `${root.type}2` }] } }, false],
  ['a type that is not a string', { deployment: { resources: [{ type: [root.type] }] } }, false],
  ['no resources', { deployment: { resources: [] } }, false],
  ['no list of resources', { deployment: {} }, false],
  ['a list elsewhere', { resources: [root], deployment: { other: [root] } }, false],
  ['a second list', `{"deployment":{"resources":[${JSON.stringify(root)}],"resources":[{},{}]}}`, false],
])('%s', async (_name, document, expected) => {
  expect(await checkInChunks(document)).toBe(expected);
});

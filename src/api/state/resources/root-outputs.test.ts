import { expect, test } from '@jest/globals';
import { readRootOutputs } from './root-outputs.ts';

const root = { urn: 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev', type: 'pulumi:pulumi:Stack' };
const child = { urn: 'urn:pulumi:dev::proj::a:b:C::c', type: 'a:b:C', parent: root.urn };

async function* inChunks(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  // All chunks use the same memory.
  const chunk = Buffer.alloc(size);
  for (let at = 0; at < bytes.length; at += size) yield chunk.subarray(0, bytes.copy(chunk, 0, at, at + size));
}

async function read(document: object | string): Promise<Record<string, unknown>> {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const [first, ...others] = await Promise.all([1, 7, 100_000].map((size) => readRootOutputs(inChunks(text, size))));
  for (const other of others) expect(other).toEqual(first);
  return Object.fromEntries(
    Object.entries(first ?? {}).flatMap(([name, part]) => (part ? [[name, JSON.parse(part.toString())]] : [])),
  );
}

const outputs = { a: 1, b: 'x'.repeat(5_000) };

test.each<[string, object | string, object]>([
  ['the root alone', { deployment: { resources: [{ ...root, outputs }] } }, { urn: root.urn, outputs }],
  [
    'others before and after',
    { deployment: { resources: [child, { ...root, outputs }, child] } },
    { urn: root.urn, outputs },
  ],
  ['a root without outputs', { deployment: { resources: [root] } }, { urn: root.urn }],
  ['no root', { deployment: { resources: [child] } }, {}],
  ['no resources', { deployment: { resources: null } }, {}],
  ['a stack below another resource', { deployment: { resources: [{ ...root, parent: child.urn, outputs }] } }, {}],
  [
    'the first of two',
    {
      deployment: {
        resources: [
          { ...root, outputs: { n: 1 } },
          { ...root, outputs },
        ],
      },
    },
    { urn: root.urn, outputs: { n: 1 } },
  ],
  ['the last of two lists', `{"deployment":{"resources":[${JSON.stringify(root)}],"resources":[]}}`, {}],
  ['a root elsewhere', { resources: [root], deployment: { resources: [], other: [root] } }, {}],
  [
    'what says how to read them',
    {
      version: 4,
      features: ['x'],
      deployment: {
        manifest: { time: 't' },
        secrets_providers: { type: 'service', state: { url: 'u' } },
        resources: [root],
      },
    },
    { version: 4, features: ['x'], secretsProviders: { type: 'service', state: { url: 'u' } }, urn: root.urn },
  ],
])('%s', async (_name, document, expected) => {
  expect(await read(document)).toEqual(expected);
});

test('a root that is too large is refused', async () => {
  const text = JSON.stringify({
    deployment: { resources: [{ ...root, outputs: { a: 'x'.repeat(9 * 1024 * 1024) } }] },
  });
  await expect(readRootOutputs(inChunks(text, 65_536))).rejects.toThrow(/more than 8 MiB/);
});

test('of a large resource after the root nothing is kept', async () => {
  const large = { ...child, outputs: { a: 'x'.repeat(9 * 1024 * 1024) } };
  const text = JSON.stringify({ deployment: { resources: [{ ...root, outputs }, large] } });
  expect(JSON.parse(String((await readRootOutputs(inChunks(text, 65_536))).outputs))).toEqual(outputs);
});

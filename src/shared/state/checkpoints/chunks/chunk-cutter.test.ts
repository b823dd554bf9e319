import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeChunk, encodeChunk } from './chunk-codec.ts';
import { cutAtResources, type TextChunk } from './chunk-cutter.ts';

const sizes = { min: 100, target: 300, max: 800 };

function documentOf(resources: readonly { readonly name: string; readonly text: string }[]): Buffer {
  const list = resources.map(({ name, text }) => ({ urn: `urn:pulumi:dev::proj::a:b:C::${name}`, outputs: { text } }));
  return Buffer.from(JSON.stringify({ version: 3, deployment: { manifest: {}, resources: list } }));
}

async function* inChunks(text: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}

function cut(text: Buffer, keys: readonly string[] = [], chunkBytes = 64): Promise<TextChunk[]> {
  return Array.fromAsync(cutAtResources(inChunks(text, chunkBytes), text.length, new Set(keys), sizes));
}

const keysOf = (chunks: readonly TextChunk[]): string[] => chunks.flatMap(({ cutKey }) => cutKey ?? []);

const resources = fc.array(fc.record({ name: fc.string({ maxLength: 12 }), text: fc.string({ maxLength: 1_500 }) }), {
  maxLength: 30,
});

test('the chunks are the text, and none is too long', async () => {
  const property = fc.asyncProperty(
    resources,
    resources,
    fc.integer({ min: 1, max: 900 }),
    async (old, list, chunkBytes) => {
      const text = documentOf(list);
      const chunks = await cut(text, keysOf(await cut(documentOf(old))), chunkBytes);
      expect(Buffer.concat(chunks.map((chunk) => chunk.text))).toEqual(text);
      for (const chunk of chunks) expect(chunk.text.length).toBeLessThanOrEqual(sizes.max);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('a chunk begins with the resource of its key, and chunks are not small', async () => {
  const list = Array.from({ length: 40 }, (_, at) => ({ name: `r${at}`, text: 'x'.repeat(50) }));
  const chunks = await cut(documentOf(list));
  expect(chunks.length).toBeGreaterThan(5);
  for (const chunk of chunks.slice(1))
    expect(chunk.text.toString()).toMatch(/^\{"urn":"urn:pulumi:dev::proj::a:b:C::r\d+"/);
  for (const chunk of chunks.slice(0, -1)) expect(chunk.text.length).toBeGreaterThanOrEqual(sizes.target);
  expect(chunks[0]?.cutKey).toBeNull();
  expect(new Set(keysOf(chunks)).size).toBe(chunks.length - 1);
});

test('what follows added and removed resources is cut as before', async () => {
  const list = Array.from({ length: 40 }, (_, at) => ({ name: `r${at}`, text: `${at}`.repeat(30) }));
  const before = await cut(documentOf(list));
  const added = list.toSpliced(3, 0, { name: 'new', text: 'y'.repeat(150) }).toSpliced(6, 1);
  const after = await cut(documentOf(added), keysOf(before));
  expect(after.slice(2).map(({ text }) => text.toString())).toEqual(before.slice(2).map(({ text }) => text.toString()));
});

test('text that cannot be scanned is cut by size', async () => {
  const text = Buffer.from('not JSON '.repeat(300));
  const chunks = await cut(text);
  expect(Buffer.concat(chunks.map((chunk) => chunk.text))).toEqual(text);
  expect(chunks.slice(0, -1).map((chunk) => chunk.text.length)).toEqual(chunks.slice(0, -1).map(() => sizes.max));
});

test('a document up to the largest size is one chunk', async () => {
  const text = documentOf([{ name: 'a', text: 'x'.repeat(600) }]);
  expect(await cut(text)).toEqual([{ text, cutKey: null }]);
});

test('a chunk is decoded with its dictionary only', async () => {
  const dictionary = Buffer.from(
    Array.from({ length: 3_000 }, (_, at) => Math.imul(at, 2_654_435_761).toString(36)).join(),
  );
  const text = Buffer.concat([dictionary.subarray(5_000), Buffer.from('new'), dictionary.subarray(0, 5_000)]);
  const bytes = await encodeChunk(text, dictionary);
  expect(bytes.length).toBeLessThan((await encodeChunk(text, null)).length / 20);
  expect(await decodeChunk(bytes, dictionary, text.length)).toEqual(text);
  await expect(decodeChunk(bytes, null, text.length)).rejects.toThrow('cannot be decompressed');
  await expect(decodeChunk(bytes, dictionary.subarray(0, -1), text.length)).rejects.toThrow('cannot be decompressed');
  await expect(decodeChunk(bytes, dictionary, text.length - 1)).rejects.toThrow('cannot be decompressed');
});

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { checkpointOfDocument, documentOfCheckpoint } from './move-document.ts';

const latest = `{ "manifest": {"time":"x"}, "resources": [ {"urn":"a","n":1.50}, {"latest":{"b":"é"}} ] }`;

/** The text in pieces of these sizes. */
function source(text: string, sizes: readonly number[] = []): () => AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  return async function* () {
    let at = 0;
    for (const size of sizes) {
      yield Buffer.from(bytes.subarray(at, at + size));
      at += size;
    }
    yield Buffer.from(bytes.subarray(at));
  };
}

async function textOf(bytes: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(bytes)).toString();
}

test('the deployment of a checkpoint file keeps its bytes, and comes back the same', async () => {
  const checkpoint = `{"version":4,"features":["views"],"checkpoint":{"stack":"organization/p/s","latest":${latest}}}`;
  const sizes = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(sizes, sizes, async (first, second) => {
      const document = await textOf(documentOfCheckpoint(source(checkpoint, first)));
      expect(document).toBe(`{"version":4,"features":["views"],"deployment":${latest}}`);
      expect(await textOf(checkpointOfDocument(source(document, second), 'organization/p/s'))).toBe(checkpoint);
    }),
  );
});

test('members in another order are found', async () => {
  const checkpoint = `{\n"checkpoint": {"latest": ${latest}, "stack": "s"}, "features": [], "version": 3 }`;
  expect(await textOf(documentOfCheckpoint(source(checkpoint)))).toBe(`{"version":3,"deployment":${latest}}`);
});

test('a checkpoint file without a state has no document', async () => {
  expect(await textOf(documentOfCheckpoint(source('{"version":3,"checkpoint":{"stack":"s","latest":null}}')))).toBe('');
});

test.each([
  ['{"version":3,"checkpoint":{"stack":"s","latest":{"resources":[}}', 'Malformed JSON'],
  ['{"version":9,"checkpoint":{"stack":"s","latest":{}}}', 'too new'],
  ['{"checkpoint":{"stack":"s","latest":{}}}', 'too old'],
  ['', 'Malformed JSON'],
])('%s is refused', async (text, message) => {
  await expect(textOf(documentOfCheckpoint(source(text)))).rejects.toThrow(message);
});

import { randomUUID } from 'node:crypto';
import { constants, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deploymentOf } from '../../bench/support/raw-client.ts';
import {
  flipBit,
  getStrictly,
  headOf,
  type StoredBytes,
  type StrictAnswer,
  spread,
  storedBytes,
} from '../support/damage.ts';
import { createStack, gzipped, ok, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { WireServer } from '../support/wire.ts';

// Stored bytes are damaged without the server's knowledge. An export then either returns exactly what was written or
// fails.

let inBlobs: TestApp;
let inRows: TestApp;
const urls = new Map<TestApp, string>();
beforeAll(async () => {
  inBlobs = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: '1' } });
  inRows = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: String(64 * 1024 * 1024) } });
  for (const app of [inBlobs, inRows]) urls.set(app, (await WireServer.listen(app)).url);
});
afterAll(async () => {
  await inBlobs?.[Symbol.asyncDispose]();
  await inRows?.[Symbol.asyncDispose]();
});

interface Exported {
  readonly app: TestApp;
  readonly stack: TestStack;
  readonly text: Buffer;
  readonly stored: StoredBytes;
}

async function importOf(app: TestApp, bytes: number): Promise<Exported> {
  const stack = await createStack(app);
  // Unique: a second copy of the same bytes would be used for a repair.
  const text = deploymentOf(bytes).toString().replace('{', `{"only":"${randomUUID()}",`);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(text) }));
  return { app, stack, text: Buffer.from(text), stored: await storedBytes(app, await headOf(app, stack)) };
}

const exportOf = ({ app, stack }: Exported, encoding: 'gzip' | 'identity', version = ''): Promise<StrictAnswer> =>
  getStrictly(`${urls.get(app)}${stack.path}/export${version}`, stack.auth, encoding);

/** Throws unless the response is the document or clearly not a document. Returns whether it is the document. */
function judge(answer: StrictAnswer, text: Buffer, what: string): boolean {
  if (answer.status !== 200) {
    if (answer.status !== 500 || !answer.isWhole) throw new Error(`${what}: answered ${answer.status}`);
    return false;
  }
  if (!answer.isWhole) return false;
  if (!answer.body?.equals(text)) throw new Error(`${what}: 200, well-formed, with other bytes`);
  return true;
}

const stores: [string, () => TestApp, number][] = [
  ['small, in the blob store', () => inBlobs, 200_000],
  ['large, in the blob store', () => inBlobs, 1_500_000],
  ['small, in the row', () => inRows, 200_000],
  ['large, in the row', () => inRows, 1_500_000],
];

describe.each(stores)('%s', (_name, appOf, bytes) => {
  test('it is exported completely over a socket, with and without gzip', async () => {
    const exported = await importOf(appOf(), bytes);
    const [plain, zipped] = [await exportOf(exported, 'identity'), await exportOf(exported, 'gzip')];
    expect([plain.isChunked, zipped.isChunked]).toEqual([false, true]);
    for (const answer of [plain, zipped]) expect(judge(answer, exported.text, 'whole')).toBe(true);
  });

  test('a flipped bit anywhere is never exported', async () => {
    const exported = await importOf(appOf(), bytes);
    const { stored, text } = exported;
    const positions = [...new Set([...spread(stored.bytes.length, 40), 4, 5, 6, 7])];
    const wrong: string[] = [];
    for (const [at, position] of positions.entries()) {
      await stored.overwrite(flipBit(stored.bytes, position, at % 8));
      const answer = await exportOf(exported, at % 2 === 0 ? 'gzip' : 'identity', at % 3 === 0 ? '/1' : '');
      try {
        const isDocument = judge(answer, text, `byte ${position}, bit ${at % 8}`);
        // A document that fits into memory is checked before the response; a larger one is recognized from the second
        // time on.
        const refusal = bytes < 1024 * 1024 || isDocument ? answer : await exportOf(exported, 'identity');
        if (!isDocument && refusal.status !== 500) throw new Error(`byte ${position}: no error was answered`);
      } catch (error) {
        wrong.push((error as Error).message);
      }
      await stored.restore();
    }
    expect(wrong).toEqual([]);
    expect(judge(await exportOf(exported, 'gzip'), text, 'restored')).toBe(true);
  });

  test('a truncated document, or one followed by more bytes, is never exported', async () => {
    const exported = await importOf(appOf(), bytes);
    const { stored, text } = exported;
    const { length } = stored.bytes;
    const cuts = [0, 12, length >> 1, length - 4, length - 1].map((end) => stored.bytes.subarray(0, end));
    for (const other of [...cuts, Buffer.concat([stored.bytes, stored.bytes])]) {
      for (const encoding of ['gzip', 'identity'] as const) {
        await stored.overwrite(other);
        judge(await exportOf(exported, encoding), text, `${other.length} of ${length} bytes`);
        await stored.restore();
      }
    }
  });

  test('another valid document in its place, with or without a checksum, is never exported', async () => {
    const exported = await importOf(appOf(), bytes);
    const { stored, text } = exported;
    const other = Buffer.from(text);
    other[other.length - 20] = (other[other.length - 20] as number) ^ 1;
    const checksum = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
    const frames = [other, Buffer.concat([text, Buffer.from(' ')]), text.subarray(0, -1)].flatMap((document) => [
      zstdCompressSync(document, checksum),
      zstdCompressSync(document),
    ]);
    for (const [at, frame] of frames.entries()) {
      for (const encoding of ['gzip', 'identity'] as const) {
        await stored.overwrite(frame);
        expect(judge(await exportOf(exported, encoding), text, `frame ${at}, ${encoding}`)).toBe(false);
        await stored.restore();
      }
    }
  });
});

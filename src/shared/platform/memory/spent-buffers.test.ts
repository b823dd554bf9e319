import { pipeline, Readable } from 'node:stream';
import { createGunzip, createGzip, gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { freeDecoded, freeWhenSpent, SpentChunks, spend } from './spent-buffers.ts';

const bytes = 200_000;
const chunkBytes = 128 * 1024;

function ownText(): Buffer {
  const text = Buffer.allocUnsafeSlow(bytes).fill('a');
  freeWhenSpent(text);
  return text;
}

test('memory is freed when all of its bytes are spent', () => {
  const text = ownText();
  spend(text.subarray(0, 100_000));
  expect(text.length).toBe(bytes);
  spend(text.subarray(100_000));
  expect(text.length).toBe(0);
});

test('a text with room after it is freed, too', () => {
  const room = Buffer.allocUnsafeSlow(bytes + 64);
  const text = room.subarray(0, bytes);
  freeWhenSpent(text);
  spend(text);
  expect(room.length).toBe(0);
});

test('memory stays if nobody asked for it to be freed', () => {
  const text = Buffer.allocUnsafeSlow(bytes);
  spend(text);
  expect(text.length).toBe(bytes);
});

test.each([
  ['twice', [0, 150_000], [0, 50_000]],
  ['out of order', [100_000, bytes], [0, 100_000]],
  ['that overlap', [0, 120_000], [80_000, bytes]],
])('memory stays if parts come %s', (_, ...parts) => {
  const text = ownText();
  for (const [from = 0, to] of parts) spend(text.subarray(from, to));
  expect(text.length).toBe(bytes);
});

test('a part that is left out keeps the memory', () => {
  const text = ownText();
  spend(text.subarray(0, 1_000));
  spend(text.subarray(1_001));
  expect(text.length).toBe(bytes);
});

/** A text that does not repeat, so that its compressed form has many chunks. */
function mixed(length: number): Buffer {
  const text = Buffer.allocUnsafe(length);
  for (let at = 0, random = 1; at < length; at++) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
    text[at] = 32 + (random >>> 26);
  }
  return text;
}

async function* decoded(gzipped: Buffer, seen: Buffer[]): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: chunkBytes });
  const source = async function* (): AsyncGenerator<Buffer> {
    // The outputs at the ends of these parts fill no chunk, and share one with the next.
    for (let at = 0; at < gzipped.length; at += 500_001) yield gzipped.subarray(at, at + 500_001);
  };
  for await (const chunk of pipeline(source(), decoder, () => {})) {
    freeDecoded(chunk as Buffer, chunkBytes);
    seen.push(chunk as Buffer);
    yield chunk as Buffer;
  }
}

test('chunks of a decoder are freed behind the encoder that reads them, and none before', async () => {
  const text = mixed(3_000_000);
  const encoder = createGzip({ level: 1 });
  const chunks = new SpentChunks(encoder);
  const seen: Buffer[] = [];
  const parts: Buffer[] = [];
  for await (const part of pipeline(chunks.from(decoded(gzipSync(text), seen)), encoder, () => {})) {
    parts.push(Buffer.from(part as Buffer));
  }
  chunks.end();
  expect(gunzipSync(Buffer.concat(parts)).equals(text)).toBe(true);
  // Where two outputs were read as one copy, the rest of their memory waits for V8.
  const kept = seen.filter(({ length }) => length > 0);
  expect(kept.length / seen.length).toBeLessThan(0.5);
  expect(seen.length).toBeGreaterThan(20);
});

test('a chunk stays while an encoder without room for its output comes back to it', async () => {
  const encoder = createGzip({ level: 1, chunkSize: 1_000 });
  const chunks = new SpentChunks(encoder);
  const text = mixed(1_000_000);
  const source = async function* (): AsyncGenerator<Buffer> {
    for (let at = 0; at < text.length; at += 100_000) {
      const chunk = Buffer.allocUnsafeSlow(100_000);
      text.copy(chunk, 0, at);
      freeWhenSpent(chunk);
      yield chunk;
    }
  };
  const parts = await Array.fromAsync(pipeline(chunks.from(source()), encoder, () => {}) as AsyncIterable<Buffer>);
  expect(gunzipSync(Buffer.concat(parts)).equals(text)).toBe(true);
});

test('what generates the chunks may use each until it is asked for the next', async () => {
  const encoder = createGzip({ level: 1 });
  const chunks = new SpentChunks(encoder);
  const texts = Array.from({ length: 20 }, ownText);
  const lengths: number[] = [];
  const source = async function* (): AsyncGenerator<Buffer> {
    for (const text of texts) {
      yield text.subarray(0, 90_000);
      yield text.subarray(90_000);
      lengths.push(text.length);
    }
  };
  for await (const _ of pipeline(chunks.from(source()), encoder, () => {}));
  expect(lengths).toEqual(texts.map(() => bytes));
  chunks.end();
  expect(texts.map(({ length }) => length)).toEqual(texts.map(() => 0));
});

test('an encoder that has not read each byte is found out', async () => {
  const chunks = new SpentChunks({ bytesWritten: 9 });
  await Array.fromAsync(chunks.from(Readable.from([Buffer.alloc(4), Buffer.alloc(6)])));
  expect(() => chunks.end()).toThrow('9 of 10 bytes');
});

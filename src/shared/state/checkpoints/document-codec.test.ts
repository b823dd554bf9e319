import { randomBytes } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import {
  checked,
  compress,
  DamagedBytesError,
  decodeDocument,
  decompressed,
  decompressedStream,
  encodeDocument,
} from './document-codec.ts';

const hashOf = (text: Buffer): Uint8Array => encodeDocument(text).sha256;

const sizes = [0, 1, 63, 64, 65, 65_536, 262_144, 262_145, 1_048_576, 1_048_577, 3_000_000];

test.each(sizes)('%i bytes are decoded as encoded', async (size) => {
  for (const text of [Buffer.alloc(size, '{"a":1},'), randomBytes(size)]) {
    const encoded = encodeDocument(text);
    expect(decodeDocument(encoded).equals(text)).toBe(true);
    expect((await decompressed(Buffer.from(encoded.bytes), encoded)).equals(text)).toBe(true);
  }
});

test.each([10, 262_144, 262_145])(
  'a document of %i bytes is damaged if stored bytes are missing or more than its size',
  async (size) => {
    const { bytes, sha256, sizeBytes } = encodeDocument(randomBytes(size));
    const stored = Buffer.from(bytes);
    for (const each of [stored.subarray(0, -1), stored.subarray(0, 5), Buffer.alloc(0), Buffer.from('{}')]) {
      await expect(decompressed(each, { sha256, sizeBytes })).rejects.toThrow(DamagedBytesError);
    }
    await expect(decompressed(stored, { sha256, sizeBytes: sizeBytes - 1 })).rejects.toThrow(DamagedBytesError);
  },
);

test('of a document in two frames, the first one is never taken for the whole', () => {
  const [first, second] = [Buffer.from('{"a":1'), Buffer.from(',"b":2}')];
  const bytes = Buffer.concat([first, second].map((part) => zstdCompressSync(part)));
  const whole = Buffer.concat([first, second]);
  // Node's decoder ignores what follows the first frame.
  const decode = () => decodeDocument({ bytes, sha256: hashOf(whole), sizeBytes: whole.length });
  expect(decode).toThrow(DamagedBytesError);
});

describe('a text of the right size with another hash', () => {
  const [text, other] = [Buffer.from('{"a":1}'), Buffer.from('{"a":2}')];
  const expected = { sha256: hashOf(other), sizeBytes: text.length };

  test('is never decoded', async () => {
    const bytes = await compress(text);
    expect(() => decodeDocument({ ...expected, bytes })).toThrow(DamagedBytesError);
    await expect(decompressed(bytes, expected)).rejects.toThrow(DamagedBytesError);
    await expect(Array.fromAsync(decompressedStream([bytes], expected))).rejects.toThrow(DamagedBytesError);
  });

  test('is passed through only without its last chunk', async () => {
    const passed: Buffer[] = [];
    const read = async (): Promise<void> => {
      for await (const chunk of checked(chunksOf(text), expected)) passed.push(chunk);
    };
    await expect(read()).rejects.toThrow(DamagedBytesError);
    expect(Buffer.concat(passed)).toEqual(text.subarray(0, -1));
  });
});

async function* chunksOf(text: Buffer): AsyncGenerator<Buffer> {
  for (const byte of text) yield Buffer.from([byte]);
}

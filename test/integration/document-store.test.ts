import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { StoredDocument } from '../../src/shared/state/checkpoints/document-store.ts';
import { testApp } from '../support/test-app.ts';

const inlineLimit = 2_000;

const app = testApp({ settings: { HOLDFAST_INLINE_BYTES: String(inlineLimit) } });

/** Small and large documents, compressible or not, around the limits of a row and of one compression call. */
const document = fc
  .record({
    bytes: fc.oneof(
      fc.integer({ min: 0, max: 5_000 }),
      fc.constantFrom(
        inlineLimit - 20,
        inlineLimit,
        inlineLimit + 1,
        1024 * 1024 - 1,
        1024 * 1024,
        1024 * 1024 + 1,
        3_000_000,
      ),
    ),
    isNoise: fc.boolean(),
  })
  .map(({ bytes, isNoise }) => (isNoise ? randomBytes(bytes) : Buffer.alloc(bytes, '{"a":[1,2,3]},')));
const chunkBytes = fc.constantFrom(1_000, 4_096, 65_536, 1_000_000, 10_000_000);

function inChunks(text: Buffer, size: number): () => AsyncIterable<Buffer> {
  return async function* () {
    for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
  };
}

async function readAll(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

describe('documents', () => {
  test('are returned unchanged from the row or the blob store', async () => {
    const locations = new Set<string>();
    await fc.assert(
      fc.asyncProperty(document, chunkBytes, async (text, size) => {
        const { documents } = app.context;
        let verified: Buffer | null = null;
        const stored: StoredDocument = await documents.save(inChunks(text, size), (sha256) => {
          verified = sha256;
        });
        const sha256 = createHash('sha256').update(text).digest();
        expect(stored.sha256.equals(sha256)).toBe(true);
        expect((verified as Buffer | null)?.equals(sha256)).toBe(true);
        expect(stored.sizeBytes).toBe(text.length);
        // In exactly one of the two locations, and only small ones in the row.
        expect((stored.inlineBytes === null) !== (stored.blobKey === null)).toBe(true);
        if (stored.inlineBytes) {
          expect(stored.inlineBytes.length).toBeLessThanOrEqual(inlineLimit);
          expect(stored.storedBytes).toBe(stored.inlineBytes.length);
        } else expect(stored.storedBytes).toBeGreaterThan(Math.min(inlineLimit, 100));
        locations.add(stored.inlineBytes ? 'row' : 'blob');
        expect((await documents.read(stored)).equals(text)).toBe(true);
        expect((await readAll(documents.open(stored))).equals(text)).toBe(true);
        // A reader may stop early.
        for await (const part of documents.open(stored)) {
          expect(text.subarray(0, part.length).equals(part)).toBe(true);
          break;
        }
      }),
      { numRuns: 60 },
    );
    expect([...locations].sort()).toEqual(['blob', 'row']);
  });

  test('that are rejected by the hash leave nothing behind', async () => {
    const { documents, db } = app.context;
    const before = db.poolState();
    const refuse = documents.save(inChunks(randomBytes(10_000), 1_000), () => {
      throw new RangeError('not this one');
    });
    await expect(refuse).rejects.toThrow(RangeError);
    expect(db.poolState().acquired).toBe(before.acquired);
  });
});

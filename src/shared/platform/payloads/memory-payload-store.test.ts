import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PayloadTooLargeError, UnavailableError } from '../errors/errors.ts';
import { MemoryPayloadStore } from './memory-payload-store.ts';

const capacity = 1_000;
const maxBytes = 600;
/** The newest body is evicted at once; nothing times out. */
const times = {
  patience: { withYielding: 0, withOthers: 1e9 },
  yieldingWaitMs: 1e9,
  waitMs: 1e9,
  stallMs: { withYielding: 1e9, withOthers: 1e9 },
};

const body = fc.record({
  chunks: fc.array(fc.integer({ min: 0, max: 250 }), { maxLength: 4 }),
  isDeclared: fc.boolean(),
  fails: fc.boolean(),
  wait: fc.boolean(),
  fairnessKey: fc.constantFrom('a', 'a', 'b'),
});

async function* stream(chunks: readonly Buffer[], fails: boolean): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    await new Promise((resolve) => setImmediate(resolve));
    yield chunk;
  }
  if (fails) throw new TypeError('body failed');
}

async function read(store: MemoryPayloadStore, key: string): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of store.open(key)) parts.push(part);
  return Buffer.concat(parts).toString('hex');
}

describe('the payload store in memory', () => {
  test('returns each stored body intact and releases all capacity in the end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 12 }), async (bodies) => {
        const store = new MemoryPayloadStore({ writes: capacity, imports: capacity }, times);
        let maxHeld = 0;
        const check = (): void => {
          maxHeld = Math.max(maxHeld, store.bytesHeld());
          expect(store.bytesHeld()).toBeGreaterThanOrEqual(0);
        };
        const puts = bodies.map(async ({ chunks, isDeclared, fails, wait, fairnessKey }, index) => {
          const key = `key-${index}`;
          const parts = chunks.map((length) => Buffer.alloc(length, index));
          const bytes = chunks.reduce((sum, length) => sum + length, 0);
          const declaredBytes = isDeclared ? bytes : null;
          try {
            const stored = await store.put(key, stream(parts, fails), {
              maxBytes,
              declaredBytes,
              budget: wait ? 'imports' : 'writes',
              fairnessKey,
            });
            check();
            expect(stored).toEqual({ bytes, encryption: null });
            expect({ bytes: bytes <= maxBytes, fails }).toEqual({ bytes: true, fails: false });
            const content = Buffer.concat(parts).toString('hex');
            expect(await read(store, key)).toBe(content);
            expect(await read(store, key)).toBe(content);
            await store.delete(key);
            await store.delete(key);
          } catch (error) {
            check();
            if (error instanceof PayloadTooLargeError) expect(bytes).toBeGreaterThan(maxBytes);
            else if (error instanceof UnavailableError)
              expect({ wait, isDeclared }).not.toEqual({ wait: true, isDeclared: true });
            else expect({ error, fails }).toEqual({ error: new TypeError('body failed'), fails: true });
          }
          await expect(read(store, key)).rejects.toThrow(UnavailableError);
        });
        await Promise.all(puts);
        expect(store.bytesHeld()).toBe(0);
        expect(maxHeld).toBeLessThanOrEqual(2 * capacity);
      }),
      { numRuns: 200 },
    );
  });
});

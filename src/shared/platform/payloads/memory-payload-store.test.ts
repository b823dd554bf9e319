import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PayloadTooLargeError, UnavailableError } from '../errors/errors.ts';
import { MemoryPayloadStore } from './memory-payload-store.ts';

const capacity = 1_000;
const maxBytes = 600;
/** The youngest gives way at once, and nobody is sent away because of the time. */
const times = {
  patience: { withYielding: 0, withOthers: 1e9 },
  yieldingWaitMs: 1e9,
  waitMs: 1e9,
  stallMs: { withYielding: 1e9, withOthers: 1e9 },
};

const body = fc.record({
  chunks: fc.array(fc.integer({ min: 0, max: 250 }), { maxLength: 4 }),
  isDeclared: fc.boolean(),
  breaksOff: fc.boolean(),
  wait: fc.boolean(),
  share: fc.constantFrom('a', 'a', 'b'),
});

async function* stream(chunks: readonly Buffer[], breaksOff: boolean): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    await new Promise((resolve) => setImmediate(resolve));
    yield chunk;
  }
  if (breaksOff) throw new TypeError('broken off');
}

async function read(store: MemoryPayloadStore, key: string): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of store.open(key)) parts.push(part);
  return Buffer.concat(parts).toString('hex');
}

describe('the hand-over store in memory', () => {
  test('gives back each body it took whole, and all room in the end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 12 }), async (bodies) => {
        const store = new MemoryPayloadStore({ writes: capacity, imports: capacity }, times);
        const most = { held: 0 };
        const look = (): void => {
          most.held = Math.max(most.held, store.bytesHeld());
          expect(store.bytesHeld()).toBeGreaterThanOrEqual(0);
        };
        const puts = bodies.map(async ({ chunks, isDeclared, breaksOff, wait, share }, index) => {
          const key = `key-${index}`;
          const parts = chunks.map((length) => Buffer.alloc(length, index));
          const bytes = chunks.reduce((sum, length) => sum + length, 0);
          const declaredBytes = isDeclared ? bytes : null;
          try {
            const taken = await store.put(key, stream(parts, breaksOff), {
              maxBytes,
              declaredBytes,
              room: wait ? 'imports' : 'writes',
              share,
            });
            look();
            expect(taken).toEqual({ bytes, seal: null });
            expect({ bytes: bytes <= maxBytes, breaksOff }).toEqual({ bytes: true, breaksOff: false });
            const whole = Buffer.concat(parts).toString('hex');
            expect(await read(store, key)).toBe(whole);
            expect(await read(store, key)).toBe(whole);
            await store.delete(key);
            await store.delete(key);
          } catch (error) {
            look();
            if (error instanceof PayloadTooLargeError) expect(bytes).toBeGreaterThan(maxBytes);
            else if (error instanceof UnavailableError)
              expect({ wait, isDeclared }).not.toEqual({ wait: true, isDeclared: true });
            else expect({ error, breaksOff }).toEqual({ error: new TypeError('broken off'), breaksOff: true });
          }
          await expect(read(store, key)).rejects.toThrow(UnavailableError);
        });
        await Promise.all(puts);
        expect(store.bytesHeld()).toBe(0);
        expect(most.held).toBeLessThanOrEqual(2 * capacity);
      }),
      { numRuns: 200 },
    );
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { UnavailableError } from '../errors/errors.ts';
import { ByteBudget } from './byte-budget.ts';

const capacity = 100;
const nextSlice = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const step = fc.oneof(
  fc.record({ kind: fc.constant('acquire' as const), bytes: fc.integer({ min: 0, max: 150 }) }),
  fc.record({ kind: fc.constant('grow' as const), which: fc.nat(), bytes: fc.integer({ min: 0, max: 150 }) }),
  fc.record({ kind: fc.constant('release' as const), which: fc.nat() }),
);

describe('a byte budget', () => {
  test('is never exceeded, admits in order, and makes no one wait needlessly', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const budget = new ByteBudget(capacity);
        const held: number[] = [];
        const waiting: number[] = [];
        const admitted: number[] = [];
        let arrivals = 0;
        const check = async (): Promise<void> => {
          await nextSlice();
          expect(budget.used).toBe(held.reduce((sum, bytes) => sum + bytes, 0));
          expect(budget.waiting).toBe(waiting.length);
          // Only a single body larger than the capacity may exceed it; all others are empty then.
          if (budget.used > capacity) expect(held.filter((bytes) => bytes > 0)).toHaveLength(1);
          // The first in the queue waits only while it does not fit.
          const next = waiting[0];
          if (next !== undefined) expect(budget.used > 0 && budget.used + next > capacity).toBe(true);
        };
        for (const each of steps) {
          if (each.kind === 'acquire') {
            const { bytes } = each;
            const position = arrivals++;
            const hasCapacity = budget.used === 0 || budget.used + bytes <= capacity;
            const fits = bytes === 0 || (waiting.length === 0 && hasCapacity);
            if (!fits) waiting.push(bytes);
            void budget.acquire(bytes, null).then(() => {
              if (!fits) expect(waiting.shift()).toBe(bytes);
              held.push(bytes);
              if (bytes > 0) admitted.push(position);
            });
          } else if (held.length > 0) {
            const at = each.which % held.length;
            if (each.kind === 'release') budget.release(held.splice(at, 1)[0] as number);
            else if (budget.tryGrow(held[at] as number, each.bytes)) held[at] = (held[at] as number) + each.bytes;
          }
          await check();
        }
        for (let round = 0; (held.length > 0 || waiting.length > 0) && round < 200; round++) {
          budget.release(held.shift() ?? 0);
          await check();
        }
        expect({ used: budget.used, waiting }).toEqual({ used: 0, waiting: [] });
        expect(admitted).toEqual([...admitted].sort((one, other) => one - other));
      }),
      { numRuns: 200 },
    );
  });

  test('ends a wait at its limit and admits the next in the queue', async () => {
    const budget = new ByteBudget(capacity);
    await budget.acquire(60, null);
    const large = budget.acquire(80, 20);
    const small = budget.acquire(40, null);
    await expect(large).rejects.toThrow(UnavailableError);
    await small;
    expect({ used: budget.used, waiting: budget.waiting, peak: budget.peak }).toEqual({
      used: 100,
      waiting: 0,
      peak: 100,
    });
  });

  test('admits a key that uses less before one that uses more, even if many of the latter wait', async () => {
    const budget = new ByteBudget(capacity);
    const admitted: string[] = [];
    const acquire = (name: string, bytes: number, fairnessKey: string) =>
      void budget.acquire(bytes, null, fairnessKey).then(() => admitted.push(name));
    acquire('much 1', 60, 'much');
    for (let number = 2; number <= 5; number++) acquire(`much ${number}`, 40, 'much');
    await nextSlice();
    expect(admitted).toEqual(['much 1', 'much 2']);
    acquire('little', 50, 'little');
    budget.release(60, 'much');
    await nextSlice();
    expect(admitted).toEqual(['much 1', 'much 2', 'little']);
    budget.release(50, 'little');
    budget.release(40, 'much');
    await nextSlice();
    expect(admitted).toEqual(['much 1', 'much 2', 'little', 'much 3', 'much 4']);
  });

  test('lets no one wait forever, for any mix of keys', async () => {
    const request = fc.record({ bytes: fc.integer({ min: 1, max: 150 }), fairnessKey: fc.constantFrom('a', 'b', 'c') });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 30 }), async (requests) => {
        const budget = new ByteBudget(capacity);
        const held: { bytes: number; fairnessKey: string }[] = [];
        let admitted = 0;
        for (const each of requests) {
          void budget.acquire(each.bytes, null, each.fairnessKey).then(() => {
            admitted++;
            held.push(each);
          });
        }
        for (let round = 0; admitted < requests.length && round < 2 * requests.length; round++) {
          await nextSlice();
          expect(budget.used).toBe(held.reduce((sum, { bytes }) => sum + bytes, 0));
          if (budget.used > capacity) expect(held).toHaveLength(1);
          const done = held.shift();
          if (done) budget.release(done.bytes, done.fairnessKey);
          // One key keeps requesting more.
          if (round < 5) void budget.acquire(1, null, 'a').then(() => budget.release(1, 'a'));
        }
        await nextSlice();
        expect(admitted).toBe(requests.length);
      }),
      { numRuns: 100 },
    );
  });
});

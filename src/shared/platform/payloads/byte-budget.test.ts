import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { UnavailableError } from '../errors/errors.ts';
import { ByteBudget } from './byte-budget.ts';

const capacity = 100;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const step = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), bytes: fc.integer({ min: 0, max: 150 }) }),
  fc.record({ kind: fc.constant('grow' as const), which: fc.nat(), bytes: fc.integer({ min: 0, max: 150 }) }),
  fc.record({ kind: fc.constant('give' as const), which: fc.nat() }),
);

describe('a budget of bytes', () => {
  test('is never overdrawn, admits in order and keeps nobody waiting for nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const budget = new ByteBudget(capacity);
        const held: number[] = [];
        const waiting: number[] = [];
        const admitted: number[] = [];
        let arrivals = 0;
        const check = async (): Promise<void> => {
          await nextTurn();
          expect(budget.used).toBe(held.reduce((sum, bytes) => sum + bytes, 0));
          expect(budget.waiting).toBe(waiting.length);
          // More than the capacity is one body that is larger than it, with nothing but empty ones beside.
          if (budget.used > capacity) expect(held.filter((bytes) => bytes > 0)).toHaveLength(1);
          // The first in line has room as soon as there is some.
          const next = waiting[0];
          if (next !== undefined) expect(budget.used > 0 && budget.used + next > capacity).toBe(true);
        };
        for (const each of steps) {
          if (each.kind === 'take') {
            const { bytes } = each;
            const position = arrivals++;
            const hasRoom = budget.used === 0 || budget.used + bytes <= capacity;
            const fits = bytes === 0 || (waiting.length === 0 && hasRoom);
            if (!fits) waiting.push(bytes);
            void budget.take(bytes, null).then(() => {
              if (!fits) expect(waiting.shift()).toBe(bytes);
              held.push(bytes);
              if (bytes > 0) admitted.push(position);
            });
          } else if (held.length > 0) {
            const at = each.which % held.length;
            if (each.kind === 'give') budget.give(held.splice(at, 1)[0] as number);
            else if (budget.tryGrow(held[at] as number, each.bytes)) held[at] = (held[at] as number) + each.bytes;
          }
          await check();
        }
        for (let turn = 0; (held.length > 0 || waiting.length > 0) && turn < 200; turn++) {
          budget.give(held.shift() ?? 0);
          await check();
        }
        expect({ used: budget.used, waiting }).toEqual({ used: 0, waiting: [] });
        expect(admitted).toEqual([...admitted].sort((one, other) => one - other));
      }),
      { numRuns: 200 },
    );
  });

  test('ends a wait that takes too long, and lets those behind it in', async () => {
    const budget = new ByteBudget(capacity);
    await budget.take(60, null);
    const large = budget.take(80, 20);
    const small = budget.take(40, null);
    await expect(large).rejects.toThrow(UnavailableError);
    await small;
    expect({ used: budget.used, waiting: budget.waiting, peak: budget.peak }).toEqual({
      used: 100,
      waiting: 0,
      peak: 100,
    });
  });

  test('lets a share with little in hand go before one with much, however many of that wait', async () => {
    const budget = new ByteBudget(capacity);
    const admitted: string[] = [];
    const take = (name: string, bytes: number, share: string) =>
      void budget.take(bytes, null, share).then(() => admitted.push(name));
    take('much 1', 60, 'much');
    for (let number = 2; number <= 5; number++) take(`much ${number}`, 40, 'much');
    await nextTurn();
    expect(admitted).toEqual(['much 1', 'much 2']);
    take('little', 50, 'little');
    budget.give(60, 'much');
    await nextTurn();
    expect(admitted).toEqual(['much 1', 'much 2', 'little']);
    budget.give(50, 'little');
    budget.give(40, 'much');
    await nextTurn();
    expect(admitted).toEqual(['much 1', 'much 2', 'little', 'much 3', 'much 4']);
  });

  test('lets nobody wait for ever, whatever the shares', async () => {
    const request = fc.record({ bytes: fc.integer({ min: 1, max: 150 }), share: fc.constantFrom('a', 'b', 'c') });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 30 }), async (requests) => {
        const budget = new ByteBudget(capacity);
        const held: { bytes: number; share: string }[] = [];
        let admitted = 0;
        for (const each of requests) {
          void budget.take(each.bytes, null, each.share).then(() => {
            admitted++;
            held.push(each);
          });
        }
        for (let turn = 0; admitted < requests.length && turn < 2 * requests.length; turn++) {
          await nextTurn();
          expect(budget.used).toBe(held.reduce((sum, { bytes }) => sum + bytes, 0));
          if (budget.used > capacity) expect(held).toHaveLength(1);
          const done = held.shift();
          if (done) budget.give(done.bytes, done.share);
          // One share keeps coming back.
          if (turn < 5) void budget.take(1, null, 'a').then(() => budget.give(1, 'a'));
        }
        await nextTurn();
        expect(admitted).toBe(requests.length);
      }),
      { numRuns: 100 },
    );
  });
});

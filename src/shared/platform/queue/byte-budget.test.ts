import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { UnavailableError } from '../errors/errors.ts';
import { ByteBudget } from './byte-budget.ts';

const capacity = 100;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const step = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), bytes: fc.integer({ min: 0, max: 150 }), wait: fc.boolean() }),
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
          // More than the capacity is one body that is larger than it, with nothing but empty ones beside.
          if (budget.used > capacity) expect(held.filter((bytes) => bytes > 0)).toHaveLength(1);
          // The first in line has room as soon as there is some.
          const next = waiting[0];
          if (next !== undefined) expect(budget.used > 0 && budget.used + next > capacity).toBe(true);
        };
        for (const each of steps) {
          if (each.kind === 'take') {
            const { bytes, wait } = each;
            const position = arrivals++;
            const fits = waiting.length === 0 && (budget.used === 0 || budget.used + bytes <= capacity);
            if (!wait && !fits) {
              await expect(budget.take(bytes, { wait })).rejects.toThrow(UnavailableError);
            } else {
              if (!fits) waiting.push(bytes);
              void budget.take(bytes, { wait }).then(() => {
                if (!fits) expect(waiting.shift()).toBe(bytes);
                held.push(bytes);
                admitted.push(position);
              });
            }
          } else if (held.length > 0) {
            const [bytes] = held.splice(each.which % held.length, 1);
            budget.give(bytes as number);
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
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MemoryInFlightBudget, type MemoryReservation } from './memory-in-flight-budget.ts';
import { BudgetExhaustedError, ReservationLostError } from './payload-store.ts';

const capacity = 100;
const nextSlice = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Nothing times out; bodies are evicted only by the rules. */
const patient = {
  patience: { withYielding: 1e9, withOthers: 1e9 },
  yieldingWaitMs: 1e9,
  waitMs: 1e9,
  stallMs: { withYielding: 1e9, withOthers: 1e9 },
};
const hasty = { ...patient, patience: { withYielding: 0, withOthers: 0 } };

const body = fc.record({
  steps: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
  isDeclared: fc.boolean(),
  fairnessKey: fc.constantFrom('a', 'a', 'b', 'c'),
});

interface Sender {
  readonly reservation: MemoryReservation;
  readonly steps: number[];
  isWaiting: boolean;
  outcome: 'arriving' | 'complete' | 'refused';
  bytes: number;
}

function send(
  budget: MemoryInFlightBudget,
  steps: readonly number[],
  claim: number | null,
  fairnessKey: string,
): Sender {
  const reservation = budget.enter({ claim, waits: true, fairnessKey });
  return { reservation, steps: [...steps], isWaiting: false, outcome: 'arriving', bytes: 0 };
}

/** Runs the next step of a sender that does not wait. */
function advance(budget: MemoryInFlightBudget, sender: Sender): void {
  if (sender.isWaiting || sender.outcome !== 'arriving') return;
  const step = sender.steps.shift();
  if (step === undefined) {
    budget.keep(sender.reservation, sender.bytes);
    sender.outcome = 'complete';
    return;
  }
  sender.isWaiting = true;
  sender.reservation.acquire(step).then(
    () => {
      sender.isWaiting = false;
      sender.bytes += step;
    },
    (error: unknown) => {
      expect([BudgetExhaustedError, ReservationLostError]).toContain((error as Error).constructor);
      sender.isWaiting = false;
      sender.outcome = 'refused';
      budget.leave(sender.reservation);
    },
  );
}

describe('an in-flight budget for bodies', () => {
  test('with known sizes, each body completes in any order of sending, and the budget is never exceeded', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(body, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        async (bodies, slices) => {
          const budget = new MemoryInFlightBudget(capacity, patient);
          const senders = bodies.map(({ fairnessKey, steps }) =>
            send(
              budget,
              steps,
              steps.reduce((sum, each) => sum + each, 0),
              fairnessKey,
            ),
          );
          const check = async (): Promise<void> => {
            await nextSlice();
            const holding = senders.filter(
              ({ reservation, outcome }) => reservation.held > 0 || outcome === 'complete',
            );
            if (budget.used > capacity)
              expect(holding.filter(({ bytes, reservation }) => bytes + reservation.held > 0)).toHaveLength(1);
          };
          const finish = async (): Promise<void> => {
            for (const sender of senders.filter(({ outcome }) => outcome === 'complete')) {
              budget.release(sender.bytes, sender.reservation.fairnessKey);
              senders.splice(senders.indexOf(sender), 1);
              await check();
            }
          };
          for (const round of slices) {
            const sender = senders[round % Math.max(senders.length, 1)];
            if (sender) advance(budget, sender);
            await check();
            if (round % 3 === 0) await finish();
          }
          for (let round = 0; senders.length > 0; round++) {
            expect(round).toBeLessThan(200);
            for (const sender of senders) advance(budget, sender);
            await check();
            expect(senders.filter(({ outcome }) => outcome === 'refused')).toEqual([]);
            await finish();
          }
          expect(budget.used).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('with unknown sizes, the oldest body completes, and none waits forever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 8 }), async (bodies) => {
        const budget = new MemoryInFlightBudget(capacity, hasty);
        const senders = bodies.map(({ isDeclared, fairnessKey, steps }) =>
          send(budget, steps, isDeclared ? steps.reduce((sum, each) => sum + each, 0) : null, fairnessKey),
        );
        for (let round = 0; senders.some(({ outcome }) => outcome === 'arriving'); round++) {
          expect(round).toBeLessThan(500);
          for (const sender of senders) advance(budget, sender);
          await nextSlice();
          for (const sender of senders) {
            if (sender.reservation.lost && sender.outcome === 'arriving' && !sender.isWaiting) advance(budget, sender);
            if (sender.outcome === 'complete' && sender.bytes > 0) {
              budget.release(sender.bytes, sender.reservation.fairnessKey);
              sender.bytes = 0;
            }
          }
          await nextSlice();
          expect(budget.used).toBeLessThanOrEqual(
            Math.max(capacity, ...senders.map(({ reservation }) => reservation.held)),
          );
        }
        // A body of unknown size is evicted for another key and for bodies of known size, even if it is the oldest.
        const areAlike = bodies.every(
          ({ isDeclared, fairnessKey }) => !isDeclared && fairnessKey === bodies[0]?.fairnessKey,
        );
        if (bodies[0]?.isDeclared || areAlike) expect(senders[0]?.outcome).toBe('complete');
        expect(budget.used).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  test('a key leaves a quarter free, counting the full size of its arriving bodies', async () => {
    const budget = new MemoryInFlightBudget(capacity, patient);
    const senders = Array.from({ length: 8 }, () => send(budget, [5, 15], 20, 'a'));
    for (let round = 0; round < 4; round++) {
      for (const sender of senders) advance(budget, sender);
      await nextSlice();
    }
    expect(senders.filter(({ outcome }) => outcome === 'complete')).toHaveLength(3);
    expect(budget.used).toBe(60);
    const other = send(budget, [25], 25, 'b');
    advance(budget, other);
    await nextSlice();
    advance(budget, other);
    expect(other.outcome).toBe('complete');
  });

  test('an import of known size does not wait forever for one of unknown size', async () => {
    const budget = new MemoryInFlightBudget(capacity, { ...patient, patience: { withYielding: 0, withOthers: 1e9 } });
    const [growing, declared] = [send(budget, [50, 10], null, 'a'), send(budget, [40, 11], 51, 'a')];
    for (let round = 0; round < 4; round++) {
      for (const sender of [growing, declared]) advance(budget, sender);
      await nextSlice();
    }
    expect([growing.outcome, declared.outcome]).toEqual(['refused', 'complete']);
  });

  test('hundreds of bodies may wait: a decision about one does not look at all', async () => {
    const [mib, keys] = [2 ** 20, 8];
    const budget = new MemoryInFlightBudget(256 * mib, patient);
    let looks = 0;
    const reservations: MemoryReservation[] = [];
    for (let at = 0; at < 60 * keys; at++) {
      const fairnessKey = `key ${at % keys}`;
      const reservation = budget.enter({ claim: 8 * mib, waits: true, fairnessKey });
      const get = (): string => {
        looks++;
        return fairnessKey;
      };
      Object.defineProperty(reservation, 'fairnessKey', { get });
      reservations.push(reservation);
      reservation.acquire(mib).catch(() => {});
      if (at % keys === 0) await nextSlice();
    }
    expect(reservations.filter(({ waiting }) => waiting).length).toBeGreaterThan(300);
    looks = 0;
    budget.release(0);
    // A pass decides about each of them.
    expect(looks / reservations.length).toBeLessThan(40);
    for (const reservation of reservations) budget.leave(reservation);
  });
});

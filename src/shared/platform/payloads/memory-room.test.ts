import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type MemoryPlace, MemoryRoom } from './memory-room.ts';
import { NoRoomError, RoomLostError } from './payload-store.ts';

const capacity = 100;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Nobody is sent away because of the time: only by the rules. */
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
  share: fc.constantFrom('a', 'a', 'b', 'c'),
});

interface Sender {
  readonly place: MemoryPlace;
  readonly steps: number[];
  isWaiting: boolean;
  outcome: 'under way' | 'whole' | 'refused';
  bytes: number;
}

function send(room: MemoryRoom, steps: readonly number[], claim: number | null, share: string): Sender {
  const place = room.enter({ claim, waits: true, share });
  return { place, steps: [...steps], isWaiting: false, outcome: 'under way', bytes: 0 };
}

/** The next step of a sender that does not wait. */
function goOn(room: MemoryRoom, sender: Sender): void {
  if (sender.isWaiting || sender.outcome !== 'under way') return;
  const step = sender.steps.shift();
  if (step === undefined) {
    room.keep(sender.place, sender.bytes);
    sender.outcome = 'whole';
    return;
  }
  sender.isWaiting = true;
  sender.place.take(step).then(
    () => {
      sender.isWaiting = false;
      sender.bytes += step;
    },
    (error: unknown) => {
      expect([NoRoomError, RoomLostError]).toContain((error as Error).constructor);
      sender.isWaiting = false;
      sender.outcome = 'refused';
      room.leave(sender.place);
    },
  );
}

describe('a room for bodies', () => {
  test('with known sizes: each body comes to its end, in any order of sending, and the room is never overdrawn', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(body, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        async (bodies, turns) => {
          const room = new MemoryRoom(capacity, patient);
          const senders = bodies.map(({ share, steps }) =>
            send(
              room,
              steps,
              steps.reduce((sum, each) => sum + each, 0),
              share,
            ),
          );
          const look = async (): Promise<void> => {
            await nextTurn();
            const holding = senders.filter(({ place, outcome }) => place.held > 0 || outcome === 'whole');
            if (room.used > capacity)
              expect(holding.filter(({ bytes, place }) => bytes + place.held > 0)).toHaveLength(1);
          };
          const finish = async (): Promise<void> => {
            for (const sender of senders.filter(({ outcome }) => outcome === 'whole')) {
              room.give(sender.bytes, sender.place.share);
              senders.splice(senders.indexOf(sender), 1);
              await look();
            }
          };
          for (const turn of turns) {
            const sender = senders[turn % Math.max(senders.length, 1)];
            if (sender) goOn(room, sender);
            await look();
            if (turn % 3 === 0) await finish();
          }
          for (let turn = 0; senders.length > 0; turn++) {
            expect(turn).toBeLessThan(200);
            for (const sender of senders) goOn(room, sender);
            await look();
            expect(senders.filter(({ outcome }) => outcome === 'refused')).toEqual([]);
            await finish();
          }
          expect(room.used).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('with unknown ones: the oldest comes to its end, and nobody waits for ever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 8 }), async (bodies) => {
        const room = new MemoryRoom(capacity, hasty);
        const senders = bodies.map(({ isDeclared, share, steps }) =>
          send(room, steps, isDeclared ? steps.reduce((sum, each) => sum + each, 0) : null, share),
        );
        for (let turn = 0; senders.some(({ outcome }) => outcome === 'under way'); turn++) {
          expect(turn).toBeLessThan(500);
          for (const sender of senders) goOn(room, sender);
          await nextTurn();
          for (const sender of senders) {
            if (sender.place.lost && sender.outcome === 'under way' && !sender.isWaiting) goOn(room, sender);
            if (sender.outcome === 'whole' && sender.bytes > 0) {
              room.give(sender.bytes, sender.place.share);
              sender.bytes = 0;
            }
          }
          await nextTurn();
          expect(room.used).toBeLessThanOrEqual(Math.max(capacity, ...senders.map(({ place }) => place.held)));
        }
        // One that does not say how much it will be makes room for another share, and for those that do, be it the oldest.
        const areAlike = bodies.every(({ isDeclared, share }) => !isDeclared && share === bodies[0]?.share);
        if (bodies[0]?.isDeclared || areAlike) expect(senders[0]?.outcome).toBe('whole');
        expect(room.used).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  test('a share leaves a quarter free, counting what its bodies on their way in will be', async () => {
    const room = new MemoryRoom(capacity, patient);
    const senders = Array.from({ length: 8 }, () => send(room, [5, 15], 20, 'a'));
    for (let turn = 0; turn < 4; turn++) {
      for (const sender of senders) goOn(room, sender);
      await nextTurn();
    }
    expect(senders.filter(({ outcome }) => outcome === 'whole')).toHaveLength(3);
    expect(room.used).toBe(60);
    const other = send(room, [25], 25, 'b');
    goOn(room, other);
    await nextTurn();
    goOn(room, other);
    expect(other.outcome).toBe('whole');
  });

  test('an import of known size does not wait for ever for one that does not say how much it will be', async () => {
    const room = new MemoryRoom(capacity, { ...patient, patience: { withYielding: 0, withOthers: 1e9 } });
    const [growing, declared] = [send(room, [50, 10], null, 'a'), send(room, [40, 11], 51, 'a')];
    for (let turn = 0; turn < 4; turn++) {
      for (const sender of [growing, declared]) goOn(room, sender);
      await nextTurn();
    }
    expect([growing.outcome, declared.outcome]).toEqual(['refused', 'whole']);
  });
});

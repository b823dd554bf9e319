import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MissingEvents } from './missing-events.ts';

test('the first missing event is known in any order of arrival', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40)), (sequences) => {
      const missing = new MissingEvents();
      const seen = new Set<number>();
      for (const sequence of sequences) {
        missing.note(sequence);
        seen.add(sequence);
        const highest = Math.max(...seen);
        const first = Array.from({ length: highest }, (_, at) => at).find((at) => !seen.has(at));
        expect(missing.first).toBe(first ?? null);
      }
    }),
  );
});

test('an event is awaited for some minutes, and later ones longer', () => {
  const missing = new MissingEvents();
  missing.note(1, 0);
  missing.note(3, 200_000);
  expect(missing.firstAwaited(299_000)).toBe(0);
  expect(missing.firstAwaited(301_000)).toBe(2);
  expect(missing.firstAwaited(501_000)).toBe(null);
  expect(missing.first).toBe(0);
});

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PackedRows } from './packed-rows.ts';

interface TestRow {
  readonly key: string;
  readonly value: unknown;
}

test('rows come back as they are, the last one of each key, as often as they are read', () => {
  const step = fc.oneof(
    fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), value: fc.jsonValue(), isKept: fc.constant(true) }),
    fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), value: fc.constant(null), isKept: fc.constant(false) }),
  );
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: 1, max: 40 }), (steps, blockChars) => {
      const packed = new PackedRows<TestRow>(blockChars);
      const expected = new Map<string, TestRow>();
      for (const { isKept, key, value } of steps) {
        expected.delete(key);
        if (isKept) {
          expected.set(key, { key, value });
          packed.set({ key, value });
        } else packed.delete(key);
      }
      expect(packed.size).toBe(expected.size);
      for (let round = 0; round < 2; round++) {
        const rows = [...packed.batches()].flat();
        expect(rows).toEqual(JSON.parse(JSON.stringify([...expected.values()])));
      }
    }),
  );
});

test('text of any characters comes back', () => {
  const packed = new PackedRows<TestRow>();
  const rows = ['ä', '\ud800', '\0', '"\\\n', '𝒳'.repeat(200_000)].map((value, at) => ({ key: `${at}`, value }));
  for (const row of rows) packed.set(row);
  expect([...packed.batches()].flat()).toEqual(rows);
});

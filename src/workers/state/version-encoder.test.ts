import { expect, test } from '@jest/globals';
import { baseNumber, encodingShape } from './version-encoder.ts';

test('of the versions of a stack, each is reached in at most twelve steps', () => {
  const steps: number[] = [];
  for (let number = 0; number < 1_000; number++) {
    const base = baseNumber(number, encodingShape);
    if (base !== null) expect(base).toBeGreaterThanOrEqual(number - (number % encodingShape.keyEvery));
    steps.push(base === null ? 0 : (steps[base] as number) + 1);
  }
  expect(Math.max(...steps)).toBe(12);
  expect(steps.filter((count) => count === 0)).toHaveLength(4);
});

test('most versions refer to the one before them', () => {
  const bases = [0, 1, 3, 4, 15, 16, 64, 68, 255, 256, 257].map((number) => baseNumber(number, encodingShape));
  expect(bases).toEqual([null, 0, 2, 0, 14, 0, 0, 64, 254, null, 256]);
});

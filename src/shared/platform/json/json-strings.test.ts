import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonString } from '../../../../testkit/json-texts.ts';
import { memberName } from './json-strings.ts';

/** The names of these JSON strings in a text, each decoded by itself and from the table. */
function readBoth(strings: readonly string[]): { expected: string[]; names: string[] } {
  const text = Buffer.from(strings.join(''));
  let at = 0;
  const names = strings.map((each) => {
    const from = at + 1;
    at += Buffer.byteLength(each);
    return memberName(text, from, at - 1);
  });
  text.fill(0);
  return { expected: strings.map((each) => JSON.parse(each) as string), names };
}

test('a name is decoded as it is, however often it comes and whatever came before it', () => {
  fc.assert(
    fc.property(
      fc.array(jsonString, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 40 }),
      (strings, order) => {
        const { expected, names } = readBoth(order.map((at) => strings[at % strings.length] as string));
        expect(names).toEqual(expected);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('more names than the table has slots are told from each other', () => {
  const lengths = [0, 1, 2, 15, 31, 32, 33, 100];
  const strings = Array.from({ length: 20_000 }, (_, at) => {
    const end = at.toString(36);
    return `"${'ü'.repeat(at % 3)}${'x'.repeat(lengths[at % lengths.length] as number)}${at % 5 === 0 ? '\\u0000' : ''}${end}"`;
  });
  // Each one twice in a row, the second time to be kept; then all in the order in which they replace each other.
  const { expected, names } = readBoth([
    ...strings.flatMap((each) => [each, each]),
    ...strings,
    ...strings.toReversed(),
  ]);
  expect(names.every((name, at) => name === expected[at])).toBe(true);
});

test('names with the same hash are told from each other', () => {
  const strings = ['mPLLJyp', 'RpvZGLA', 'RpvZGLA', 'RpvZGLA', 'mPLLJyp', 'mPLLJyp', 'RpvZGLA', 'mPLLJyp'];
  const { expected, names } = readBoth(strings.map((each) => `"${each}"`));
  expect(names).toEqual(expected);
});

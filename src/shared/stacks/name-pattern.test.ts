import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nameMatches } from './name-pattern.ts';

const text = (characters: string) =>
  fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map((each) => each.join(''));

test('a pattern matches as the expression does in which * is any text', () => {
  fc.assert(
    fc.property(text('ab.*\n'), text('ab.\n'), (pattern, name) => {
      const parts = pattern.split('*').map((part) => part.replaceAll('.', '\\.'));
      expect(nameMatches(pattern, name)).toBe(new RegExp(`^${parts.join('.*')}$`, 's').test(name));
    }),
    { numRuns: 5_000 },
  );
});

const many = 'a'.repeat(1_000_000);
test.each([
  ['many repetitions at the end', `*${'a'.repeat(498)}b`, many],
  ['many repetitions in between', `*${'a'.repeat(248)}b*`, many],
  ['many repetitions after another character', `*ab${'a'.repeat(495)}*`, `ab${'a'.repeat(400)}c`.repeat(50) + many],
  ['many parts', '*a'.repeat(249).concat('*b'), many],
])('takes time proportional to the lengths: %s', (_, pattern, name) => {
  const began = process.cpuUsage();
  for (let round = 0; round < 10; round++) expect(nameMatches(pattern, name)).toBe(false);
  // A comparison at each position takes more than ten times as long.
  expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
});

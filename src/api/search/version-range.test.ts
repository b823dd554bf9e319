import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { compareVersionTexts, isInRange, parseVersionRange, type VersionRange } from './version-range.ts';

const range = (text: string): VersionRange => {
  const parsed = parseVersionRange(text);
  if (parsed === null) throw new Error(`${text} is no range`);
  return parsed;
};

describe('ranges of versions', () => {
  test.each([
    ['6', ['6.0.0', '6.10.2', '6.99.0', '6.1.0-alpha'], ['5.9.9', '7.0.0', '6.0.0-alpha', '7.0.0-alpha']],
    ['6.1', ['6.1.0', '6.1.10'], ['6.0.9', '6.2.0', '6.10.0']],
    ['6.1.2', ['6.1.2', 'v6.1.2', '6.1.2+build'], ['6.1.20', '6.1.2-alpha']],
    ['<6', ['5.99.0', '6.0.0-alpha.1'], ['6.0.0', '10.0.0']],
    ['<=6', ['6.99.0', '5.0.0'], ['7.0.0', '60.0.0']],
    ['>6', ['7.0.0', '10.0.0', '7.0.0-alpha'], ['6.99.9', '6.0.0']],
    ['>=6.2', ['6.2.0', '6.10.0', '7.0.0'], ['6.1.9']],
    ['>6.1.2', ['6.1.3'], ['6.1.2', '6.1.2-alpha']],
    ['<=6.1.2', ['6.1.2', '6.1.2-alpha'], ['6.1.3']],
    ['5.3..6.1', ['5.3.0', '6.1.9'], ['5.2.9', '6.2.0']],
    ['6.*', ['6.1.0'], ['7.0.0']],
    ['1.0.0-rc.2', ['1.0.0-rc.2'], ['1.0.0', '1.0.0-rc.10', '1.0.0-rc.1']],
  ])('%s', (text, inside, outside) => {
    expect(inside.filter((version) => !isInRange(version, range(text)))).toEqual([]);
    expect(outside.filter((version) => isInRange(version, range(text)))).toEqual([]);
  });

  test.each(['', 'x', '6.', '<', '1.2.3.4', '..', '1..', '1..2..3', '6-alpha', '>=<6', '1234567890'])(
    '%j is none',
    (text) => expect(parseVersionRange(text)).toBeNull(),
  );

  test('text that is not a version is in no range', () => {
    for (const text of ['', 'latest', '6', '6.1', '6.1.2.3']) expect(isInRange(text, range('>=0'))).toBe(false);
  });

  test('prereleases are ordered by semver precedence', () => {
    const ordered = [
      ...[
        '1.0.0-alpha',
        '1.0.0-alpha.1',
        '1.0.0-alpha.beta',
        '1.0.0-beta',
        '1.0.0-beta.2',
        '1.0.0-beta.11',
        '1.0.0-rc.1',
      ],
      ...['1.0.0', '1.0.1', '1.2.0', '1.10.0', '2.0.0'],
    ];
    expect([...ordered].reverse().sort(compareVersionTexts)).toEqual(ordered);
  });

  const number = fc.integer({ min: 0, max: 30 });
  const version = fc.tuple(number, number, number).map((parts) => parts.join('.'));
  test('a version is on one side of a bound, and in the range that starts and ends with it', () => {
    fc.assert(
      fc.property(version, version, (one, limit) => {
        const below = isInRange(one, range(`<${limit}`));
        const above = isInRange(one, range(`>${limit}`));
        const equal = isInRange(one, range(limit));
        expect([below, equal, above].filter(Boolean)).toHaveLength(1);
        expect(isInRange(one, range(`<=${limit}`))).toBe(below || equal);
        expect(isInRange(one, range(`${limit}..${limit}`))).toBe(equal);
        expect(Math.sign(compareVersionTexts(one, limit))).toBe(below ? -1 : above ? 1 : 0);
      }),
    );
  });
});

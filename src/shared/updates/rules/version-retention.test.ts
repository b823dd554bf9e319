import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { RuleSettings } from './rule-kinds.ts';
import { VersionRetention } from './version-retention.ts';

type Settings = RuleSettings<'keep-versions'>;
const now = new Date('2026-11-30T12:00:00Z');
const hourMs = 3_600_000;

function kept(settings: Settings, times: readonly Date[], at = now): Date[] {
  const sieve = new VersionRetention(settings, at);
  return times.filter((time) => sieve.keeps(time));
}

const times = (...texts: string[]): Date[] => texts.map((text) => new Date(`${text}:00Z`));
const texts = (dates: readonly Date[]): string[] => dates.map((date) => date.toISOString().slice(0, 16));

test('the newest version is always kept', () => {
  const old = times('2020-01-02T00:00', '2020-01-01T00:00');
  for (const settings of [{ days: 1 }, { daily: 1 }, { monthly: 1 }, { newest: 1 }])
    expect(kept(settings, old)).toEqual(old.slice(0, 1));
});

test.each<[string, Settings, string[]]>([
  ['the newest ones', { newest: 2 }, ['2026-11-30T11:00', '2026-11-30T10:00']],
  ['all of the last days', { days: 2 }, ['2026-11-30T11:00', '2026-11-30T10:00', '2026-11-28T13:00']],
  ['the last of each day', { daily: 3 }, ['2026-11-30T11:00', '2026-11-28T13:00']],
  ['the last of each month', { monthly: 2 }, ['2026-11-30T11:00', '2026-10-31T09:00']],
  [
    'what any of them keeps',
    { days: 1, daily: 3, monthly: 9 },
    ['2026-11-30T11:00', '2026-11-30T10:00', '2026-11-28T13:00', '2026-10-31T09:00', '2026-03-01T00:00'],
  ],
])('a rule keeps %s', (_, settings, expected) => {
  const all = times(
    ...['2026-11-30T11:00', '2026-11-30T10:00', '2026-11-28T13:00', '2026-11-28T11:00', '2026-10-31T09:00'],
    ...['2026-10-01T09:00', '2026-03-01T00:00', '2026-02-28T00:00'],
  );
  expect(texts(kept(settings, all))).toEqual(expected);
});

describe('months', () => {
  test('end on the last day of a shorter one', () => {
    const at = new Date('2026-05-31T12:00:00Z');
    expect(texts(kept({ monthly: 3 }, times('2026-05-01T00:00', '2026-02-28T13:00'), at))).toHaveLength(2);
    expect(texts(kept({ monthly: 3 }, times('2026-05-01T00:00', '2026-02-28T11:00'), at))).toHaveLength(1);
  });
});

test('what is kept does not depend on how often the rule was applied before', () => {
  const settings = fc.record({
    newest: fc.integer({ min: 1, max: 5 }),
    days: fc.integer({ min: 1, max: 4 }),
    daily: fc.integer({ min: 1, max: 20 }),
    monthly: fc.integer({ min: 1, max: 6 }),
  });
  const gaps = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 150 });
  fc.assert(
    fc.property(settings, gaps, fc.infiniteStream(fc.boolean()), (rule, hours, coins) => {
      let time = Date.UTC(2026, 0, 1);
      const all: Date[] = [];
      let swept: Date[] = [];
      for (const hour of hours) {
        time += hour * hourMs;
        all.unshift(new Date(time));
        swept.unshift(new Date(time));
        if (coins.next().value) swept = kept(rule, swept, new Date(time));
      }
      const end = new Date(time + hourMs);
      // `newest` counts the versions that are left: it may keep more of them.
      const expected = kept(rule, all, end).map(Number);
      expect(kept(rule, swept, end).map(Number)).toEqual(expect.arrayContaining(expected));
    }),
  );
});

test('a clock that was set back keeps more, never less', () => {
  const [a, b, c] = times('2026-11-20T10:00', '2026-11-21T10:00', '2026-11-20T09:00') as [Date, Date, Date];
  expect(kept({ daily: 20 }, [a, b, c])).toEqual([a, b, c]);
});

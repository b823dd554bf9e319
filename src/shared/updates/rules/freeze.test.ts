import { describe, expect, test } from '@jest/globals';
import { FrozenError, findFreeze } from './freeze.ts';
import type { RuleSettings } from './rule-kinds.ts';
import { parseRule, UpdateRules } from './update-rules.ts';

const at = (time: string, ...settings: RuleSettings<'freeze'>[]) =>
  new UpdateRules(
    settings.map((each, index) => ({
      id: String(index),
      kind: 'freeze',
      project: null,
      stack: null,
      tag: null,
      note: `note ${index}`,
      settings: each,
    })),
    new Date(time),
  );
const endAt = (time: string, ...settings: RuleSettings<'freeze'>[]): string | null => {
  const freeze = findFreeze(at(time, ...settings));
  return freeze && (freeze.until?.toISOString() ?? 'thawed');
};
const weekend = { cron: '0 17 * * 5', timeZone: 'Europe/Berlin', minutes: 61 * 60 };

test.each([
  ['without an end', '2026-01-01T00:00:00Z', {}, 'thawed'],
  ['before its end', '2026-01-01T00:00:00Z', { until: '2026-01-01T00:00:01Z' }, '2026-01-01T00:00:01.000Z'],
  ['at its end', '2026-01-01T00:00:01Z', { until: '2026-01-01T00:00:01Z' }, null],
  [
    'with an end in another zone',
    '2026-01-01T00:00:00Z',
    { until: '2026-01-01T02:00:00+01:00' },
    '2026-01-01T01:00:00.000Z',
  ],
  ['before a window', '2026-11-20T15:59:59Z', { windows: [weekend] }, null],
  ['as a window begins', '2026-11-20T16:00:00Z', { windows: [weekend] }, '2026-11-23T05:00:00.000Z'],
  ['as a window ends', '2026-11-23T04:59:59Z', { windows: [weekend] }, '2026-11-23T05:00:00.000Z'],
  ['after a window', '2026-11-23T05:00:00Z', { windows: [weekend] }, null],
  ['as summer time begins', '2026-03-28T12:00:00Z', { windows: [weekend] }, '2026-03-30T05:00:00.000Z'],
  [
    'in a window, with an end',
    '2026-11-21T00:00:00Z',
    { windows: [weekend], until: '2026-11-21T01:00:00Z' },
    '2026-11-21T01:00:00.000Z',
  ],
  [
    'in windows that overlap',
    '2026-11-21T00:00:00Z',
    { windows: [{ cron: '0 * 21 * *', timeZone: 'UTC', minutes: 60 }] },
    '2026-11-22T00:00:00.000Z',
  ],
])('%s', (_, time, settings, expected) => {
  expect(endAt(time, settings)).toBe(expected);
});

test('one that refuses comes before one that lets updates wait', () => {
  const freeze = findFreeze(at('2026-01-01T00:00:00Z', { mode: 'wait' }, { until: '2026-01-02T00:00:00Z' }));
  expect(freeze?.rule.note).toBe('note 1');
  const error = new FrozenError(freeze as NonNullable<typeof freeze>, 'acme', 'Wait.');
  expect(error.message).toBe(
    'Frozen: updates of organization acme are not allowed until 2026-01-02T00:00:00Z: note 1. Wait.',
  );
  expect(error.mayWait).toBe(false);
  expect(findFreeze(at('2026-01-01T00:00:00Z', { mode: 'wait' }))?.rule.settings.mode).toBe('wait');
});

describe('a window that is written', () => {
  const parse = (window: object) => parseRule({ kind: 'freeze', settings: { windows: [{ ...weekend, ...window }] } });

  test.each([
    {},
    { cron: '0 0 * * *', minutes: 60 },
    { cron: '0 0 * * 6,0', minutes: 1_440 },
    { cron: '0 8-18 * * MON-FRI', timeZone: 'UTC', minutes: 60 },
    { cron: '*/5 8-18 * * MON-FRI', timeZone: 'UTC', minutes: 4 },
  ])('%j is valid', (window) => {
    expect(() => parse(window)).not.toThrow();
  });

  test.each([
    { cron: '0 0 17 * * 5' },
    { cron: '0 17 * *' },
    { cron: '2026-12-01T00:00:00' },
    { cron: '0 0 31 2 *' },
    { cron: '61 * * * *' },
    { timeZone: 'Europe/Nowhere' },
    { timeZone: '' },
    { minutes: 0 },
    // Hardly ever closes.
    { cron: '*/1 * * * *', minutes: 44_640 },
    { cron: '0 0 * * *', minutes: 1_440 },
    { cron: '0 * * * *', minutes: 60 },
    { minutes: 7 * 1_440 },
    { more: 1 },
  ])('%j is not', (window) => {
    expect(() => parse(window)).toThrow();
  });
});

import { describe, expect, test } from '@jest/globals';
import { draftOf, emptyDraft, type RuleDraft, writtenRule } from './rule-draft.ts';
import {
  describeEstimate,
  describeSettings,
  describeWindow,
  durationText,
  limitedKinds,
  queueKinds,
  retentionKinds,
  ruleKinds,
} from './rule-labels.ts';

test.each([
  ['concurrency', { most: 1 }, 'At most 1 update at once'],
  ['concurrency', { most: 20, per: 'user' }, 'At most 20 updates at once for each user'],
  ['lock-wait', { seconds: 0 }, 'Updates do not wait'],
  ['lock-wait', { seconds: 1800 }, 'Updates wait for up to 30 minutes'],
  ['wait-alert', { seconds: 600 }, 'Webhooks are notified after 10 minutes'],
  ['change-limit', { changes: 0 }, 'At most 0 resources deleted or replaced'],
  [
    'change-limit',
    { changes: 2, percent: 10, withoutJournal: 'refuse' },
    'At most 2 resources and 10 % of the stack deleted or replaced; updates without a journal are refused',
  ],
  ['protected-types', { types: ['aws:*', 'b'] }, 'aws:*, b'],
  [
    'protected-types',
    { types: ['b'], approvers: 'tokens' },
    'b; tokens of teams, organizations and services may approve more',
  ],
  [
    'keep-versions',
    { newest: 10, days: 1, daily: 90, monthly: 12 },
    'Kept: the newest 10 versions; all of the last 1 day; the last of each day for 90 days; the last of each month for 12 months',
  ],
  ['keep-previews', { days: 30 }, 'Kept for 30 days'],
  ['later', { some: 1 }, '{"some":1}'],
])('%s %j says: %s', (kind, settings, words) => {
  expect(describeSettings(kind, settings)).toBe(words);
});

test.each([
  ['0 17 * * 5', 3660, 'Friday at 17:00, for 61 hours (Europe/Berlin)'],
  ['5 9 * * 1-5', 90, 'Monday to Friday at 09:05, for 90 minutes (Europe/Berlin)'],
  ['0 0 * * *', 60, 'Each day at 00:00, for 1 hour (Europe/Berlin)'],
  ['0 0 1 * *', 60, 'From each time of 0 0 1 * *, for 1 hour (Europe/Berlin)'],
])('the window %s of %i minutes is: %s', (cron, minutes, words) => {
  expect(describeWindow({ cron, minutes, timeZone: 'Europe/Berlin' })).toBe(words);
});

test('every kind of rule has a section of the page', () => {
  expect(['freeze', ...queueKinds, ...limitedKinds, ...retentionKinds].sort()).toEqual(Object.keys(ruleKinds).sort());
});

test('durations use the largest unit that fits', () => {
  expect([1, 59, 60, 61, 3_600, 3_661, 86_400, 172_800].map(durationText)).toEqual([
    ...['1 second', '59 seconds', '1 minute', '1 min 1 s', '1 hour', '1 h 1 min', '1 day', '2 days'],
  ]);
});

test('an estimate says what is deleted, and what is not', () => {
  const estimate = {
    kind: 'keep-versions',
    count: 1200,
    bytes: 34_560_000,
    heldCount: 1,
    otherCount: 2,
    isComplete: true,
  };
  expect(describeEstimate(estimate)).toBe(
    'It deletes the state of 1,200 versions (33.0 MiB). 1 stack under a legal hold is left out. A more specific rule decides about 2 stacks.',
  );
  const small = { ...estimate, kind: 'keep-previews', count: 1, bytes: 900, heldCount: 0, otherCount: 0 };
  expect(describeEstimate({ ...small, isComplete: false })).toBe('It deletes at least 1 preview (900 B).');
  expect(describeEstimate({ ...small, count: 0 })).toBe('It deletes nothing now.');
});

describe('a form', () => {
  const draft = (part: Partial<RuleDraft>): RuleDraft => ({ ...emptyDraft(part.kind ?? 'freeze'), ...part });

  test('is sent when nothing is missing', () => {
    expect(writtenRule(draft({ note: ' Sale ' }))).toEqual({
      ...{ kind: 'freeze', project: null, stack: null, tag: null, settings: {}, note: 'Sale' },
    });
    expect(writtenRule(draft({ scope: 'stack', project: 'web' }))).toBeNull();
    expect(writtenRule(draft({ scope: 'tag' }))).toBeNull();
    expect(writtenRule(draft({ kind: 'change-limit' }))).toBeNull();
    expect(writtenRule(draft({ kind: 'protected-types', types: ' \n ' }))).toBeNull();
    expect(writtenRule(draft({ windows: [{ cron: '', hours: '1', timeZone: 'UTC' }] }))).toBeNull();
  });

  test('sends only the chosen fields', () => {
    const windows = [{ cron: ' 0  17 * * 5', hours: '1.5', timeZone: 'UTC' }];
    expect(
      writtenRule(draft({ scope: 'tag', tagName: 'env', tagValue: 'prod', stack: 'left', windows })),
    ).toMatchObject({
      ...{ project: null, stack: null, tag: { name: 'env', value: 'prod' } },
      settings: { windows: [{ cron: '0 17 * * 5', minutes: 90, timeZone: 'UTC' }] },
    });
    expect(writtenRule(draft({ kind: 'change-limit', changes: '0' }))?.settings).toEqual({ changes: 0 });
  });

  test('contains the fields of a rule', () => {
    const rule = {
      ...{ id: 'a', kind: 'require-preview', project: 'web', stack: null, tag: null, note: 'n', scope: 'project web' },
      ...{ settings: { mode: 'refuse', ownPreview: 'ignored' }, setAt: '', setBy: null, freeze: null, revision: 'r' },
    };
    expect(writtenRule(draftOf(rule))).toMatchObject({
      kind: 'require-preview',
      project: 'web',
      settings: rule.settings,
    });
  });
});

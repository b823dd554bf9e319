import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Rule } from '../../platform/app/procedure-types.ts';
import { draftOf, writtenRule } from './rule-draft.ts';

const { env } = process;
const { TZ: zone } = env;

beforeAll(() => {
  env['TZ'] = 'Europe/Berlin';
});
afterAll(() => {
  if (zone === undefined) delete env['TZ'];
  else env['TZ'] = zone;
});

const freezeUntil = (until: string): Omit<Rule, 'freeze' | 'isManaged'> => ({
  ...{ id: 'id', kind: 'freeze', scope: '', project: null, stack: null, tag: null, note: 'Sale' },
  ...{ settings: { until }, revision: '1', setAt: '2026-01-01T00:00:00Z', setBy: 'ada' },
});

test.each(['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z', '2026-07-01T12:00:05.123Z', '2026-07-01T12:00:00Z'])(
  'who edits the note of a freeze until %s leaves its end as it is',
  (until) => {
    const draft = draftOf(freezeUntil(until));
    const written = writtenRule({ ...draft, note: 'Sales' });
    expect(Date.parse(String(written?.settings['until']))).toBe(Date.parse(until));
    const changed = writtenRule({ ...draft, until: '2026-12-24T18:30' });
    expect(changed?.settings['until']).toBe('2026-12-24T17:30:00.000Z');
  },
);

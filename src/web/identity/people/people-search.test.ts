import { expect, test } from '@jest/globals';
import { parseAuditSearch, parseMemberSearch, parseTokenSearch, toAuditQuery } from '../../platform/app/list-search.ts';

test('filters in a URL are kept, and unknown parameters are dropped', () => {
  expect(parseMemberSearch({ text: 'ada', role: 'owner' })).toEqual({ text: 'ada', role: undefined });
  expect(parseTokenSearch({ of: 'me', runs: '1' })).toEqual({ of: 'me', runs: '1' });
  expect(parseTokenSearch({ of: 'you', runs: 'x' })).toEqual({ of: undefined, runs: undefined });
  expect(parseAuditSearch({ actor: 'ada', outcome: 'refused', from: '2026-01-31', until: '2026-99-99' })).toEqual({
    action: undefined,
    actor: 'ada',
    object: undefined,
    outcome: 'refused',
    from: '2026-01-31',
    until: undefined,
  });
});

test('a range of days includes its last day, and filters that are not set are not sent', () => {
  const query = toAuditQuery({ actor: 'ada', from: '2026-01-31', until: '2026-01-31' }, undefined);
  expect(Object.keys(query).sort()).toEqual(['actor', 'from', 'until']);
  expect(Date.parse(query.until as string) - Date.parse(query.from as string)).toBe(86_400_000 - 1);
});

test('days are those of the zone in which times are shown', () => {
  const { env } = process;
  const { TZ: zone = 'UTC' } = env;
  env['TZ'] = 'Europe/Berlin';
  expect(toAuditQuery({ from: '2026-01-31' }, undefined)).toEqual({ from: '2026-01-30T23:00:00.000Z' });
  expect(toAuditQuery({ from: '2026-01-31', until: '2026-02-01' }, 'UTC')).toEqual({
    from: '2026-01-31T00:00:00.000Z',
    until: '2026-02-01T23:59:59.999Z',
  });
  env['TZ'] = zone;
});

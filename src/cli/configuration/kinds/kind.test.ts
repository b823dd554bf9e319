import { expect, test } from '@jest/globals';
import { kinds } from './kinds.ts';

test('the key of a rule or a grant does not depend on the order in which its members are written', () => {
  const window = { cron: '0 18 * * 5', timeZone: 'UTC', minutes: 60 };
  const other = { minutes: 60, cron: '0 18 * * 5', timeZone: 'UTC' };
  const rule = (settings: object, tag: object) =>
    kinds.UpdateRule.keyOf('', kinds.UpdateRule.complete({ rule: 'freeze', settings, tag }));
  expect(rule({ windows: [window], mode: 'wait' }, { name: 'env', value: 'prod' })).toBe(
    rule({ mode: 'wait', windows: [other] }, { value: 'prod', name: 'env' }),
  );
  expect(rule({ windows: [window, { ...window, minutes: 9 }] }, {})).not.toBe(
    rule({ windows: [{ ...window, minutes: 9 }, window] }, {}),
  );
  const grant = (tag: object) =>
    kinds.Grant.keyOf('', kinds.Grant.complete({ user: 'ann', permissions: ['read'], tag }));
  expect(grant({ name: 'env', value: 'prod' })).toBe(grant({ value: 'prod', name: 'env' }));
});

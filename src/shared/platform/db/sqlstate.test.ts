import { expect, test } from '@jest/globals';
import { BackendTerminatedError } from 'slonik';
import { AcquireTimeoutError } from './connection-gate.ts';
import { isHiddenFunction, isOutage, mapDatabaseError } from './sqlstate.ts';

test.each([
  ['not permitted', '42501', 'permission denied for function pg_current_wal_lsn', true],
  ['missing', '42883', 'function pg_current_wal_lsn() does not exist', true],
  ['refused for the level of the log', '55000', `wal_level must be set to 'logical'`, true],
  ['refused by a standby', '55000', 'recovery is in progress', false],
  ['cancelled', '57014', 'canceling statement due to statement timeout', false],
])('a function that is %s is hidden, or not', (_, code, message, isHidden) => {
  const cause = Object.assign(new Error(message), { code });
  expect(isHiddenFunction(new Error('Query failed', { cause }))).toBe(isHidden);
});

test.each([
  ['a broken connection, whatever broke it', new BackendTerminatedError(new Error('write EPROTO')), true],
  ['a refused login', Object.assign(new Error('password authentication failed'), { code: '28P01' }), false],
])('%s is an outage, or not', (_, error, expected) => {
  expect(isOutage(error)).toBe(expected);
});

test.each([
  ['statement timeout', '57014', /^The database took too long/],
  ['lock timeout', '55P03', /^The database took too long/],
  ['deadlock', '40P01', /^Other calls keep changing the same data/],
  ['full disk', '53100', /^The database has no disk space/],
  ['shutdown', '57P01', /^The database is not available/],
])('after a %s, a caller learns whether the database is unreachable, busy or full', (_, code, expected) => {
  const cause = Object.assign(new Error('from Postgres'), { code });
  expect((mapDatabaseError(new Error('Query failed', { cause })) as Error).message).toMatch(expected);
});

test('a caller without a connection learns that others wait, too', () => {
  const { message } = mapDatabaseError(new AcquireTimeoutError(10)) as Error;
  expect(message).toBe('Too many calls wait for the database; please retry');
});

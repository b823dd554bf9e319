import { expect, test } from '@jest/globals';
import { UpdateRules } from '../../../shared/updates/rules/update-rules.ts';
import { lockWaitProblem, lockWaitSeconds } from './lock-wait.ts';

const { none } = UpdateRules;

test.each([
  ['90', 90],
  ['90s', 90],
  ['10m', 600],
  ['24h', 86_400],
  ['0', 0],
])('%s is %s seconds', (text, seconds) => {
  expect(lockWaitSeconds({ 'lock-wait': text }, none, 'pulumi', 7)).toBe(seconds);
  expect(lockWaitProblem(text)).toBeNull();
});

test.each(['', 'soon', '-1', '1.5', '25h', '1d', '10 m', '1000000000000'])('%j is no time', (text) => {
  expect(lockWaitSeconds({ 'lock-wait': text }, none, 'pulumi', 7)).toBe(7);
  expect(lockWaitProblem(text)).toMatch('The tag lock-wait must be a time up to 24 hours');
});

test('the default is not for clients of the contract', () => {
  expect(lockWaitSeconds({}, none, 'pulumi', 7)).toBe(7);
  expect(lockWaitSeconds({}, none, 'contract', 7)).toBe(0);
  expect(lockWaitSeconds({ 'lock-wait': '5' }, none, 'contract', 7)).toBe(5);
  expect(lockWaitProblem(undefined)).toBeNull();
});

test('the tag of the stack comes before rules, and rules before the default', () => {
  const rule = {
    id: 'r',
    kind: 'lock-wait',
    project: null,
    stack: null,
    tag: null,
    settings: { seconds: 60 },
    note: '',
  } as const;
  const rules = new UpdateRules([rule], new Date());
  expect(lockWaitSeconds({}, rules, 'pulumi', 7)).toBe(60);
  expect(lockWaitSeconds({ 'lock-wait': '5' }, rules, 'pulumi', 7)).toBe(5);
  expect(lockWaitSeconds({}, rules, 'contract', 7)).toBe(0);
});

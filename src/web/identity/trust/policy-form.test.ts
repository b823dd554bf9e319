import { expect, test } from '@jest/globals';
import { decided, draftOf, draftToSent, isReady, type Policy, toSent } from './policy-form.ts';

const policy: Policy = {
  id: 'x',
  decision: 'allow',
  tokenType: 'team',
  owner: 'blue',
  isAdmin: false,
  rules: [{ claim: 'sub', patterns: ['repo:acme/web:*', 'repo:acme/api:*'] }],
  scopes: [{ stacks: 'web/*', permissions: ['preview'] }],
  maxSeconds: 600,
};

test('a policy that is opened and saved stays the same', () => {
  expect(draftToSent(draftOf(policy))).toEqual(toSent(policy));
});

test('a draft without a claim or a pattern is not ready, and lines are patterns', () => {
  const draft = draftOf(null);
  expect(isReady(draft)).toBe(false);
  const filled = { ...draft, rules: [{ claim: ' sub ', patterns: ' a \n\n b' }] };
  expect(isReady(filled)).toBe(true);
  expect(isReady({ ...filled, life: '1h' })).toBe(false);
  expect(draftToSent(filled)).toMatchObject({ rules: [{ claim: 'sub', patterns: ['a', 'b'] }], maxSeconds: null });
});

test('a denial covers any token until a kind is chosen, and a policy that allows never does', () => {
  const draft = draftOf(null);
  const denying = { ...draft, ...decided(draft, 'deny') };
  expect(draftToSent(denying)).toMatchObject({ decision: 'deny', tokenType: 'any' });
  expect(decided(denying, 'allow')).toEqual({ decision: 'allow', tokenType: 'organization' });
  expect(decided({ ...denying, tokenType: 'team' }, 'allow')).toEqual({ decision: 'allow', tokenType: 'team' });
});

test('fields that do not apply to the decision or kind of token are not sent', () => {
  const draft = { ...draftOf(policy), isAdmin: true };
  expect(draftToSent({ ...draft, decision: 'deny' })).not.toHaveProperty('scopes');
  expect(draftToSent({ ...draft, tokenType: 'organization' })).toMatchObject({ isAdmin: true });
  expect(draftToSent({ ...draft, tokenType: 'organization' })).not.toHaveProperty('owner');
  expect(draftToSent(draft)).toMatchObject({ isAdmin: false, owner: 'blue' });
});

import { expect, test } from '@jest/globals';
import { toggled } from './favorites.ts';

test('a favorite is of one user: another one with the same browser adds and removes only own ones', () => {
  const stack = { organization: 'acme', project: 'web', stack: 'prod' };
  const [ada, eve] = [
    { login: 'ada', ...stack },
    { login: 'eve', ...stack },
  ];
  expect(toggled([ada], eve)).toEqual([ada, eve]);
  expect(toggled([ada, eve], eve)).toEqual([ada]);
});

import { expect, jest, test } from '@jest/globals';
import { awaitPageAction, listPageActions, runPageAction } from './palette-actions.ts';
import { offerAction } from './platform/app/page-actions.ts';

test('an action of the page that has gone since the palette opened runs on no other page', () => {
  const cancel = jest.fn();
  const end = offerAction('Cancel this update', cancel);
  expect(listPageActions()).toEqual(['Cancel this update']);
  end();
  runPageAction('Cancel this update');
  const endOther = offerAction('Cancel this update', cancel);
  expect(cancel).not.toHaveBeenCalled();
  runPageAction('Cancel this update');
  expect(cancel).toHaveBeenCalledTimes(1);
  endOther();
});

test('an action of another page runs once that page offers it, unless the user goes on', () => {
  const create = jest.fn();
  awaitPageAction('Create a token');
  offerAction('Create a token', create)();
  offerAction('Create a token', create)();
  expect(create).toHaveBeenCalledTimes(1);
  const giveUp = awaitPageAction('Create a token');
  giveUp();
  offerAction('Create a token', create)();
  expect(create).toHaveBeenCalledTimes(1);
  // What is given up is what was chosen then.
  awaitPageAction('Create a token');
  giveUp();
  offerAction('Create a token', create)();
  expect(create).toHaveBeenCalledTimes(2);
});

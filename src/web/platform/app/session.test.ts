import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { noteUser } from './session.ts';

const reload = jest.fn();
let hasForm = false;

beforeEach(() => {
  reload.mockClear();
  Object.assign(globalThis, {
    document: { querySelector: () => (hasForm ? {} : null) },
    location: { reload },
  });
});
afterEach(() => {
  Reflect.deleteProperty(globalThis, 'document');
  Reflect.deleteProperty(globalThis, 'location');
});

test('a page of one user is loaded anew once another one has signed in, and nothing is open', () => {
  for (const [login, isOpen, reloads] of [
    ['ada', false, 0],
    ['ada', false, 0],
    ['bob', true, 0],
    ['ada', false, 0],
    ['bob', true, 0],
    ['bob', false, 1],
  ] as const) {
    hasForm = isOpen;
    noteUser(login);
    expect(reload).toHaveBeenCalledTimes(reloads);
  }
});

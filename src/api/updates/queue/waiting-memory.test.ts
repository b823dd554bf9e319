import { expect, test } from '@jest/globals';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { WaitingMemory } from './waiting-memory.ts';

const callChars = 8 * 1024;

test('an organization waits with at most half of the memory that others leave', () => {
  // Of 16 calls with as many characters of texts as the rest of a call counts.
  const memory = new WaitingMemory(16 * 4 * callChars);
  const held = Array.from({ length: 8 }, () => memory.hold('one', callChars, { isNew: true }));
  expect(() => memory.hold('one', callChars, { isNew: true })).toThrow(UnavailableError);
  for (let at = 0; at < 4; at++) memory.hold('two', callChars, { isNew: true });
  expect(() => memory.hold('two', callChars, { isNew: true })).toThrow('Too many runs of organization two wait');
  for (const each of held) each[Symbol.dispose]();
  for (let at = 0; at < 4; at++) memory.hold('two', callChars, { isNew: true });
  expect(() => memory.hold('two', callChars, { isNew: true })).toThrow(UnavailableError);
  for (let at = 0; at < 4; at++) memory.hold('one', callChars, { isNew: true });
  expect(() => memory.hold('one', callChars, { isNew: true })).toThrow(UnavailableError);
});

test('a call that has waited before continues to wait when another organization begins to', () => {
  const memory = new WaitingMemory(16 * 4 * callChars);
  const again = { isNew: false };
  const held = Array.from({ length: 8 }, () => memory.hold('one', callChars, { isNew: true }));
  for (let at = 0; at < 4; at++) memory.hold('two', callChars, { isNew: true });
  for (const each of held) {
    each[Symbol.dispose]();
    memory.hold('one', callChars, again);
  }
  expect(() => memory.hold('one', callChars, { isNew: true })).toThrow(UnavailableError);
  for (let at = 0; at < 4; at++) memory.hold('one', callChars, again);
  expect(() => memory.hold('one', callChars, again)).toThrow(UnavailableError);
});

import { expect, test } from '@jest/globals';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { WaitingMemory } from './waiting-memory.ts';

const callChars = 8 * 1024;

test('an organization waits with at most half of the memory that others leave', () => {
  // Of 16 calls with as many characters of texts as the rest of a call counts.
  const memory = new WaitingMemory(16 * 4 * callChars);
  const held = Array.from({ length: 8 }, () => memory.hold('one', callChars));
  expect(() => memory.hold('one', callChars)).toThrow(UnavailableError);
  for (let at = 0; at < 4; at++) memory.hold('two', callChars);
  expect(() => memory.hold('two', callChars)).toThrow('Too many runs of organization two wait');
  for (const each of held) each[Symbol.dispose]();
  for (let at = 0; at < 4; at++) memory.hold('two', callChars);
  expect(() => memory.hold('two', callChars)).toThrow(UnavailableError);
  for (let at = 0; at < 4; at++) memory.hold('one', callChars);
  expect(() => memory.hold('one', callChars)).toThrow(UnavailableError);
});

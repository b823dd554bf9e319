import { expect, test } from '@jest/globals';
import { outputLossOf } from './output-loss.ts';

const event = (metadata: unknown) => JSON.stringify({ sequence: 1, resOutputsEvent: { metadata } });

test.each([
  [
    'renamed and removed',
    { old: { outputs: { b: 1, a: 2, keep: 3 } }, new: { outputs: { keep: 3, c: 1 } } },
    ['a', 'b'],
  ],
  ['all removed', { old: { outputs: { a: 1 } }, new: {} }, ['a']],
  ['named like members of objects', { old: { outputs: { toString: 1 } }, new: { outputs: {} } }, ['toString']],
  ['kept', { old: { outputs: { a: 1 } }, new: { outputs: { a: null } } }, []],
  ['new', { old: null, new: { outputs: { a: 1 } } }, []],
  ['gone with their stack', { old: { outputs: { a: 1 } }, new: null }, []],
  ['of no known form', { old: { outputs: ['a'] }, new: { outputs: {} } }, []],
])('outputs that are %s', (_, metadata, expected) => expect(outputLossOf(event(metadata))).toEqual(expected));

test.each(['null', '[]', '{"resOutputsEvent":3}', event(null)])('anything else says nothing: %s', (text) =>
  expect(outputLossOf(text)).toEqual([]),
);

test('invalid JSON is not treated as an event without removals', () =>
  expect(() => outputLossOf('{"resOutputsEvent":')).toThrow(SyntaxError));

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isStorableJson, storableJson } from './storable-json.ts';

test.each([
  ['a\0b', 'a\ufffdb'],
  ['\\\0', '\\\ufffd'],
  ['\0\0', '\ufffd\ufffd'],
  ['\ud800', '\ufffd'],
  ['x\udc00\ud83d', 'x\ufffd\ufffd'],
])('%j becomes %j, in names, too', (text, stored) => {
  expect(JSON.parse(storableJson({ [text]: [text] }))).toEqual({ [stored]: [stored] });
  expect(isStorableJson({ [text]: 1 })).toBe(false);
});

test.each(['\\u0000', '\\\\u0000', '\\ud800', '^[^\\u0000]$', '😀', '\u0001\n"', ''])('%j is kept', (text) => {
  expect(storableJson({ [text]: text })).toBe(JSON.stringify({ [text]: text }));
  expect(isStorableJson([text])).toBe(true);
});

test('any text becomes what Postgres can store, and nothing else changes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 0xffff }), (text, unit) => {
      const odd = `${text}${String.fromCharCode(unit)}`;
      expect(JSON.parse(storableJson(odd))).toBe(odd.toWellFormed().replaceAll('\0', '\ufffd'));
    }),
  );
});

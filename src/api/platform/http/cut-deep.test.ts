import { expect, test } from '@jest/globals';
import { cutDeep } from './cut-deep.ts';

const nested = (counters: number, inner: string): Buffer =>
  Buffer.from(`{"a":${'['.repeat(counters)}${inner}${']'.repeat(counters)},"b":"${'['.repeat(300)}"}`);

test('deeply nested values are replaced by a mark, and nothing else is', () => {
  const flat = nested(99, '1, 2');
  expect(cutDeep(flat)).toBe(flat);
  const cut = cutDeep(nested(100, '1')).toString('utf8');
  expect(cut).toBe(nested(99, '{"[deep]":3}').toString('utf8'));
  expect(() => JSON.stringify(JSON.parse(cutDeep(nested(9_900, '')).toString('utf8')))).not.toThrow();
});

test('invalid JSON throws a JsonSyntaxError', () => {
  expect(() => cutDeep(Buffer.from(`${'['.repeat(300)}]`))).toThrow('Malformed JSON');
});

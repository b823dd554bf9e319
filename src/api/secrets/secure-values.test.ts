import { expect, test } from '@jest/globals';
import { secureValues } from './secure-values.ts';

const found = (json: string) =>
  secureValues(json)?.map(({ ciphertext, end, start }) => [ciphertext, json.slice(start, end)]);

test('secrets of a structured setting are found in order', () => {
  expect(found('{"a":{"secure":"x"},"b":[1,{"secure":"y"}],"secure":2}')).toEqual([
    ['x', '{"secure":"x"}'],
    ['y', '{"secure":"y"}'],
  ]);
});

test('nested content of a secret is part of it', () => {
  const outer = '{"secure":"x","b":{"secure":"y"}}';
  expect(found(`[${outer}]`)).toEqual([['x', outer]]);
});

test('a value is not mistaken for the one beside it', () => {
  expect(found('{"a":{"secure":"x"},"b":{"c":1},"d":{}}')).toEqual([['x', '{"secure":"x"}']]);
  expect(found('[{"secure":"x","secure":1},{}]')).toEqual([['x', '{"secure":"x","secure":1}']]);
});

test('deep values are searched', () => {
  const [open, close] = ['{"a":'.repeat(5_000), '}'.repeat(5_000)];
  expect(found(`${open}[${'{},'.repeat(20_000)}{"secure":"x"}]${close}`)).toEqual([['x', '{"secure":"x"}']]);
});

test.each(['text', '', '{', '{"a"}'])('%j is no structured setting', (text) => expect(secureValues(text)).toBeNull());

import { expect, test } from '@jest/globals';
import { heapGrowth } from '../../../../test/support/heap.ts';
import { copyOf, cutText } from './cut-text.ts';

const mib = 1024 * 1024;
const longText = (at: number): string => JSON.parse(`"${`${at}`.padEnd(2 * mib, 'x')}"`) as string;

test.each([
  ['a cut text', (text: string) => cutText(text, 300)],
  ['a copy of a part', (text: string) => copyOf(text.slice(0, 50))],
])('%s does not keep the whole one in memory', async (_, partOf) => {
  const growth = await heapGrowth(() => Array.from({ length: 50 }, (_each, at) => partOf(longText(at))));
  expect(growth).toBeLessThan(10 * mib);
});

test('a text that is short enough stays as it is; half a character becomes well-formed', () => {
  expect(cutText('abc', 3)).toBe('abc');
  expect(cutText('abcd', 3)).toBe('abc');
  expect(cutText('ab😀', 3)).toBe('ab\uFFFD');
});

import { expect, test } from '@jest/globals';
import { beginningOf } from './beginning-of.ts';

test('of a long document, whole lines are shown at first', () => {
  const text = 'a line\n'.repeat(100_000);
  const shown = beginningOf(text);
  expect(shown.length).toBeLessThanOrEqual(20_000);
  expect(shown).toMatch(/^(a line\n)+a line$/);
});

test('a document of one long line is cut, too', () => {
  expect(beginningOf('x'.repeat(5_000_000))).toHaveLength(20_000);
  expect(beginningOf(`\n${'x'.repeat(5_000_000)}`)).toHaveLength(20_000);
});

test('other documents are shown as they are', () => {
  for (const text of ['', '# Title\n', 'x'.repeat(40_000)]) expect(beginningOf(text)).toBe(text);
});

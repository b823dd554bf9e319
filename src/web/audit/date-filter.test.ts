import { expect, test } from '@jest/globals';
import { readDate } from './date-filter.tsx';

test('a date is applied once its year is typed', () => {
  const typed = ['', '0002-11-29', '0020-11-29', '0202-11-29', '2026-11-29', ''];
  expect(typed.map((text) => readDate(text, '2025-01-01'))).toEqual([
    '',
    '2025-01-01',
    '2025-01-01',
    '2025-01-01',
    '2026-11-29',
    '',
  ]);
});

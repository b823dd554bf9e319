import { expect, test } from '@jest/globals';
import { byteText, msText } from './byte-text.ts';

test('sizes use a suitable unit', () => {
  expect([0, 1023, 1024, 1536, 150 * 1024, 3.4 * 1024 ** 2, 2 ** 50].map(byteText)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '150 KiB',
    '3.4 MiB',
    '1024 TiB',
  ]);
});

test('short times are exact', () => {
  expect([0.84, 34.4, 1234].map(msText)).toEqual(['0.8 ms', '34 ms', '1.2 s']);
});

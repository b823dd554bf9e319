import { expect, test } from '@jest/globals';
import { partBytesOf } from './s3-upload.ts';

const mib = 1024 ** 2;
const gib = 1024 ** 3;

test.each([0, 1, 20 * gib, 49 * gib, 200 * gib, 400 * gib])(
  'a body of about %d bytes fits into 10,000 parts, even if it is larger by half',
  (expectedBytes) => {
    expect(expectedBytes * 1.5).toBeLessThanOrEqual(partBytesOf(expectedBytes) * 10_000);
    expect(partBytesOf(expectedBytes)).toBeGreaterThanOrEqual(5 * mib);
  },
);

test('parts are as small as S3 permits while they can be, and bounded: each upload holds four in memory', () => {
  expect([0, 20 * gib].map(partBytesOf)).toEqual([5 * mib, 5 * mib]);
  expect(partBytesOf(2_000 * gib)).toBe(64 * mib);
});

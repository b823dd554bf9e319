import { expect, test } from '@jest/globals';
import { findOutliers } from './outliers.ts';

const items = (...seconds: number[]) => seconds.map((each) => ({ seconds: each }));

test('updates that take much longer than the middle half are named, the longest first', () => {
  const found = findOutliers(items(60, 62, 58, 61, 200, 59, 63, 60, 900));
  expect(found).toMatchObject({ median: 61, usual: [60, 63] });
  expect(found?.outliers.map(({ seconds }) => seconds)).toEqual([900, 200]);
});

test('small differences are none, and few updates have no usual duration', () => {
  expect(findOutliers(items(1, 1, 1, 1, 1, 1, 1, 9))?.outliers).toEqual([]);
  expect(findOutliers(items(1, 1, 1, 1, 1, 1, 1, 13))?.outliers).toHaveLength(1);
  expect(findOutliers(items(1, 1, 900))).toBeNull();
});

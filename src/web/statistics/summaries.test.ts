import { expect, test } from '@jest/globals';
import { meanMs, orderProjects, rate, sumStatistics } from './summaries.ts';

const statistics = (more: object) => ({ ...sumStatistics([]), ...more });

test('sums add up, except for the maximum', () => {
  const days = [
    statistics({ runs: 2, failed: 1, waitedMs: 5, longestMs: 9 }),
    statistics({ runs: 3, runMs: 50, longestMs: 7 }),
  ];
  expect(sumStatistics(days)).toMatchObject({ runs: 5, failed: 1, waitedMs: 5, runMs: 50, longestMs: 9 });
  expect(meanMs(sumStatistics(days))).toBe(10);
  expect(meanMs(sumStatistics([]))).toBe(0);
});

test('rates are percent, exact where they are small', () => {
  expect([rate(0, 0), rate(0, 9), rate(1, 1000), rate(1, 8), rate(3, 3)]).toEqual([
    '–',
    '0 %',
    '0.1 %',
    '13 %',
    '100 %',
  ]);
});

test('projects are sorted by the selected order, then by name', () => {
  const projects = [
    { project: 'b', ...statistics({ runs: 1, runMs: 10, failed: 1 }) },
    { project: 'a', ...statistics({ runs: 1, runMs: 10 }) },
    { project: 'c', ...statistics({ runs: 9, runMs: 27, waitedMs: 3 }) },
  ];
  const names = (order: Parameters<typeof orderProjects>[1]) =>
    orderProjects(projects, order)
      .map(({ project }) => project)
      .join('');
  expect([names('slowest'), names('failures'), names('queue'), names('runs')]).toEqual(['abc', 'bac', 'cab', 'cab']);
});

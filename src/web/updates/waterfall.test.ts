import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ResourceRow, RowStatus } from './update-progress.ts';
import { layOutWaterfall } from './waterfall.ts';

function row(urn: string, startedAt: number | null, endedAt: number | null, status: RowStatus = 'done'): ResourceRow {
  return {
    ...{ urn, type: 'a:b:C', parent: null, op: 'create', status, startedAt, endedAt, diffs: [], detailedDiff: null },
    ...{ isProtected: false, diagnostics: [], worst: null, activity: null, children: [], lastStep: null },
  };
}

describe('the waterfall', () => {
  test('gives bars that overlap different lanes', () => {
    const { bars, laneCount, start, end } = layOutWaterfall([row('a', 0, 5), row('b', 2, 9), row('c', 5, 6)], 100);
    expect(bars.map(({ row: { urn }, lane }) => [urn, lane])).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 0],
    ]);
    expect({ laneCount, start, end }).toEqual({ laneCount: 2, start: 0, end: 9 });
  });

  test('extends running steps until now, and leaves out steps that never started', () => {
    const { bars, end } = layOutWaterfall([row('a', 0, null, 'running'), row('b', null, null, 'known')], 100);
    expect(bars).toMatchObject([{ start: 0, end: 100, isRunning: true }]);
    expect(end).toBe(100);
  });

  test('never lets bars of one lane overlap', () => {
    const times = fc.array(fc.tuple(fc.nat(50), fc.nat(20)), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(times, (list) => {
        const { bars, laneCount } = layOutWaterfall(
          list.map(([at, took], n) => row(`r${n}`, at, at + took)),
          100,
        );
        for (const one of bars) {
          expect(one.lane).toBeLessThan(laneCount);
          for (const other of bars) {
            if (one !== other && one.lane === other.lane)
              expect(one.end <= other.start || other.end <= one.start).toBe(true);
          }
        }
      }),
    );
  });

  test('marks the resources of the critical path', () => {
    const { bars } = layOutWaterfall([row('a', 0, 10), row('b', 10, 20), row('c', 0, 3)], 100, new Set(['a', 'b']));
    expect(bars.filter((bar) => bar.isCritical).map((bar) => bar.row.urn)).toEqual(['a', 'b']);
  });
});

import { afterEach, expect, jest, test } from '@jest/globals';
import { until } from '../../../../testkit/until.ts';
import type { RateCounterReport } from '../../../shared/identity/rate-counter-repository.ts';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { SharedRateCounters } from './shared-rate-counters.ts';

const source = { name: 'address 192.0.2.1', perMinute: 60 };
const other = { name: 'token 1', perMinute: 600 };
const open: SharedRateCounters[] = [];
afterEach(async () => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await Promise.all(open.splice(0).map((counters) => counters.close()));
});

function create(
  report: (reports: readonly RateCounterReport[]) => Promise<{ source: string; level: number }[]>,
  reportEveryMs = 1,
) {
  const counters = new SharedRateCounters({ report, logger: createLogger({ level: 'silent' }), reportEveryMs });
  open.push(counters);
  return counters;
}

/** Counters also drain while a process is paused. */
function stopTime(): void {
  jest.spyOn(performance, 'now').mockReturnValue(performance.now());
}

test('admits what the smallest limit allows, then says how long the wait is', () => {
  stopTime();
  const counters = create(async () => []);
  let admitted = 0;
  while (counters.take([source, other], 0) === null) admitted++;
  expect(admitted).toBe(60);
  const admission = counters.take([source, other], 0);
  expect(admission).toMatchObject({ isCounted: false, source });
  expect(admission?.waitMs).toBeGreaterThan(0);
  expect(admission?.waitMs).toBeLessThanOrEqual(1_000);
});

test('waiting callers are admitted one after another, and only as many may wait as fit into the time', () => {
  stopTime();
  const counters = create(async () => []);
  while (counters.take([source], 0) === null);
  const waits = [];
  for (let admission = counters.take([source], 5_000); admission?.isCounted; admission = counters.take([source], 5_000))
    waits.push(admission.waitMs);
  expect(waits.length).toBeGreaterThanOrEqual(4);
  expect(waits.length).toBeLessThanOrEqual(6);
  for (const [at, wait] of waits.slice(1).entries()) expect(wait - (waits[at] as number)).toBeGreaterThan(800);
  expect(counters.take([source], 0)?.isCounted).toBe(false);
});

test('without the database each process limits by itself, and reports its counts later', async () => {
  let isAway = true;
  let attempts = 0;
  const reported = new Map<string, number>();
  const counters = create(async (reports) => {
    attempts++;
    if (isAway) throw new Error('away');
    for (const { source: name, events } of reports) reported.set(name, (reported.get(name) ?? 0) + events);
    return reports.map(({ source: name }) => ({ source: name, level: 90 }));
  });
  for (let event = 0; event < 50; event++) expect(counters.take([source], 0)).toBeNull();
  await until(() => attempts >= 3, 'it was tried three times');
  isAway = false;
  await until(() => reported.get(source.name) === 50, 'all are reported');
  // The report returns the counts of the other replicas.
  await until(() => counters.take([source], 0)?.isCounted === false, 'counts of other replicas apply');
  expect(counters.take([source], 0)?.waitMs).toBeGreaterThan(20_000);
});

/** Levels of sources as Postgres keeps them, with the events of each report. Timers are fake, and time stands still between them. */
function sharedLevels() {
  jest.useFakeTimers();
  const levels = new Map<string, { level: number; at: number }>();
  const reported: number[] = [];
  const report = async (reports: readonly RateCounterReport[]) =>
    reports.map(({ source: name, events, perSecond, highest }) => {
      const now = performance.now();
      const { at, level: before } = levels.get(name) ?? { level: 0, at: now };
      const level = Math.min(highest, events + Math.max(0, before - (perSecond * (now - at)) / 1_000));
      levels.set(name, { level, at: now });
      reported.push(events);
      return { source: name, level };
    });
  return { report, reported };
}

test('steady requests to several processes count together', async () => {
  const { report } = sharedLevels();
  const processes = [create(report, 1_000), create(report, 1_000)];
  let admitted = 0;
  // Each gets 0.9 of the limit, for five minutes.
  const requests = 5 * 540;
  for (let request = 0; request < requests; request++) {
    for (const counters of processes) if (counters.take([other], 0) === null) admitted++;
    await jest.advanceTimersByTimeAsync(60_000 / 540);
  }
  // A full counter, and what drains.
  const allowed = 6 * other.perMinute;
  expect(admitted).toBeGreaterThan(allowed * 0.95);
  expect(admitted).toBeLessThan(allowed * 1.1);
});

test.each(['there', 'away'])(
  'requests of long ago do not count once more when the database is %s',
  async (database) => {
    const { report, reported } = sharedLevels();
    let isAway = database === 'away';
    const counters = create(async (reports) => {
      if (isAway) throw new Error('away');
      return report(reports);
    }, 1_000);
    for (let request = 0; request < 300; request++) {
      expect(counters.take([source], 0)).toBeNull();
      await jest.advanceTimersByTimeAsync(2_000);
    }
    isAway = false;
    for (let request = 0; request < 8; request++) expect(counters.take([source], 0)).toBeNull();
    await jest.advanceTimersByTimeAsync(1_000);
    expect(Math.max(...reported)).toBeLessThanOrEqual(20);
    expect(counters.take([source], 0)).toBeNull();
  },
);

import { expect, test } from '@jest/globals';
import { listProblems } from './attention.ts';

type Parts = Parameters<typeof listProblems>;
const up = { isUp: true, latencyMs: 1, lastFailure: null };
const process = { isLate: false } as Parts[0]['processes'][number];
const queue = { name: 'small', failed: 0, workers: 2 } as Parts[1]['queues'][number];
const task = { name: 'sweep-blobs', failedAt: null, error: null } as Parts[2]['runs'][number];
const audit = { unchainedSeconds: 2, unsentSeconds: null } as Parts[2]['audit'];
const health = { blobs: { ...up, kind: 's3' }, database: up, queue: up, processes: [process] } as unknown as Parts[0];

test('a healthy installation has no problems', () => {
  expect(listProblems(health, { queues: [queue] } as Parts[1], { audit, runs: [task] })).toEqual([]);
});

test('each failing part is named, the worst first, with the page that shows it', () => {
  const down = { ...up, isUp: false };
  const found = listProblems(
    {
      ...health,
      database: down,
      blobs: { ...health.blobs, isUp: false },
      queue: down,
      processes: [{ ...process, isLate: true }],
    } as Parts[0],
    { queues: [{ ...queue, failed: 2, workers: 0 }] } as Parts[1],
    {
      audit: { ...audit, unchainedSeconds: 900, unsentSeconds: 900 },
      runs: [task, { ...task, failedAt: '2026-01-01T00:00:00Z', error: 'disk full' }],
    },
  );
  expect(found.map(({ page, what }) => [what, page])).toEqual([
    ['Postgres does not answer', null],
    ['The blob store does not answer', null],
    ['Redis does not answer', '/~/operator/queues'],
    ['No worker processes small writes', '/~/operator/queues'],
    ['2 jobs of the small writes failed', '/~/operator/queues'],
    ['1 process sends no heartbeat', null],
    ['The task "sweep blobs" fails', '/~/operator/tasks'],
    ['Audit events are not chained', '/~/operator/tasks'],
    ['The audit log is not forwarded', '/~/operator/tasks'],
  ]);
  expect(found[6]?.hint).toBe('disk full');
});

test('an installation without Redis does not report missing workers', () => {
  const alone = { ...health, queue: null } as Parts[0];
  expect(listProblems(alone, { queues: [{ ...queue, workers: null }] } as Parts[1], { audit, runs: [] })).toEqual([]);
});

import { expect, test } from '@jest/globals';
import { listProblems } from './attention.ts';

type Parts = Parameters<typeof listProblems>;
const up = { isUp: true, latencyMs: 1, lastFailure: null };
const process = { isLate: false } as Parts[0]['processes'][number];
type Tasks = NonNullable<Parts[2]>;
const queue = (change = {}) => [{ name: 'small', failed: 0, workers: 2, ...change }] as unknown as Parts[1];
const task = { name: 'sweep-blobs', failedAt: null, error: null } as Tasks['runs'][number];
const audit = { unchainedSeconds: 2, unsentSeconds: null, unexportedSeconds: null };
const faults: Tasks['faults'] = {
  ...{ blockedStacks: 0, damagedDocuments: 0, isOutgoingHeld: false, backupOverdueSeconds: 60 },
};
const health = { blobs: { ...up, kind: 's3' }, database: up, queue: up, processes: [process] } as unknown as Parts[0];

test('a healthy installation has no problems', () => {
  expect(listProblems(health, queue(), { audit, faults, runs: [task] })).toEqual([]);
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
    queue({ failed: 2, workers: 0 }),
    {
      audit: { unchainedSeconds: 900, unsentSeconds: 900, unexportedSeconds: 900 },
      faults: { blockedStacks: 2, damagedDocuments: 1, isOutgoingHeld: true, backupOverdueSeconds: 90_000 },
      runs: [task, { ...task, failedAt: '2026-01-01T00:00:00Z', error: 'disk full' }],
    },
  );
  expect(found.map(({ page, what }) => [what, page])).toEqual([
    ['Postgres does not answer', null],
    ['The blob store does not answer', null],
    ['Redis does not answer', '/~/operator/queues'],
    ['2 stacks take no changes', null],
    ['1 stored state is damaged', null],
    ['This database was restored and has not taken over', null],
    ['No worker processes small writes', '/~/operator/queues'],
    ['2 jobs of the small writes failed', '/~/operator/queues'],
    ['1 process sends no heartbeat', null],
    ['The task "sweep blobs" fails', '/~/operator/tasks'],
    ['The scheduled backup is overdue by more than a day', '/~/operator/backups'],
    ['Audit events are not chained', '/~/operator/tasks'],
    ['The audit log is not forwarded', '/~/operator/tasks'],
    ['The audit log is not exported', '/~/operator/tasks'],
  ]);
  expect(found.find(({ what }) => what.startsWith('The task'))?.hint).toBe('disk full');
});

test('an installation without Redis does not report missing workers', () => {
  const alone = { ...health, queue: null } as Parts[0];
  expect(listProblems(alone, queue({ workers: null }), { audit, faults, runs: [] })).toEqual([]);
});

test('without Redis, queues cannot be read, and the other problems are named', () => {
  const found = listProblems({ ...health, queue: { ...up, isUp: false } } as Parts[0], null, {
    ...{ audit, faults, runs: [{ ...task, failedAt: '2026-01-01T00:00:00Z' }] },
  });
  expect(found.map(({ what }) => what)).toEqual([
    'Redis does not answer',
    'Queues or tasks cannot be read at the moment',
    'The task "sweep blobs" fails',
  ]);
});

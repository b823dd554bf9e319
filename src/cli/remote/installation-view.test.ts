import { expect, test } from '@jest/globals';
import { drawInstallation, type Installation } from './installation-view.ts';

const update = (at: number): Installation['updates'][number] => ({
  ...{ updateId: `${at}`, organization: 'acme', project: 'web', stack: `s${at}`, kind: 'update', by: 'ada' },
  ...{ since: '2026-01-01T10:00:00Z', isExpired: at === 0, waiting: at },
});
const installation: Installation = {
  parts: { database: { isUp: true, latencyMs: 1.25 }, blobs: { isUp: false, latencyMs: null }, queue: null },
  processes: [
    { role: 'worker', host: 'w-1', pid: 7, version: '0.1.0', isLate: true, cpu: 0.125, rssBytes: 2e8, loopMs: 12.4 },
  ],
  queues: [{ name: 'small', active: 1, waiting: 2, failed: 0, oldestWaitingMs: 61_000, workers: 3 }],
  updates: Array.from({ length: 20 }, (_, at) => update(at)),
  hasMoreUpdates: true,
  slow: [],
};
const draw = (columns: number, rows: number): string =>
  drawInstallation(installation, { at: new Date('2026-01-01T11:30:00Z'), origin: 'https://h', columns, rows });

test('each part, process, queue and update has a line', () => {
  const lines = draw(200, 100).split('\n');
  expect(lines[1]).toBe('Postgres 1.3 ms   blobs DOES NOT ANSWER');
  expect(lines).toContain('worker   w-1   7    0.1.0    13 %  200 MB  12 ms    NOT HEARD OF');
  expect(lines).toContain('small  1        2        1 min 1 s  0       3');
  expect(lines).toContain('RUNNING UPDATES (20+)  KIND    FOR         BY   WAITING');
  expect(lines).toContain('acme/web/s0            update  1 h 30 min  ada  0        EXPIRED');
});

test('of many processes, the late ones are shown, below the state of the parts', () => {
  const [late] = installation.processes;
  const processes = Array.from({ length: 30 }, (_, at) => ({ ...late, host: `h-${at}`, isLate: at === 20 }));
  const queues = Array.from({ length: 8 }, (_, at) => ({ ...installation.queues[0], name: `q${at}` }));
  const size = { at: new Date(), origin: 'https://h', columns: 200, rows: 22 };
  const lines = drawInstallation({ ...installation, processes, queues } as Installation, size).split('\n');
  expect(lines.length).toBeLessThanOrEqual(22);
  expect(lines[1]).toBe('Postgres 1.3 ms   blobs DOES NOT ANSWER');
  expect(lines[4]).toMatch(/h-20 .*NOT HEARD OF/);
  expect(lines).toContain('… 27 more');
});

test('the view fits the terminal', () => {
  const lines = draw(40, 24).split('\n');
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(Math.max(...lines.map((line) => line.length))).toBe(40);
  expect(lines).toContain('… more');
});

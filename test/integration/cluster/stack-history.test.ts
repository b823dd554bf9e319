import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { openGatedBlobs } from '../../support/gated-blobs.ts';
import { findViolations, type RecordedCall, type RecordedVersion } from '../../support/history/check-history.ts';
import { printCall, type Replica, randomOf, StackRace } from '../../support/history/stack-race.ts';
import { createTestApp, createTestDatabase, type TestDatabase } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';

// Clients of one stack race on three replicas whose queue is clogged now and then; the responses are recorded and
// checked. HOLDFAST_TEST_HISTORY_ROUNDS makes the test longer, HOLDFAST_TEST_HISTORY_SEED repeats the choices of a run.

const rounds = Number(process.env['HOLDFAST_TEST_HISTORY_ROUNDS'] ?? 4);
const seed = Number(process.env['HOLDFAST_TEST_HISTORY_SEED'] ?? Date.now() % 1_000_000);

describe('the checker', () => {
  const call = (kind: RecordedCall['kind'], begunAt: number, more: Partial<RecordedCall> = {}): RecordedCall => ({
    kind,
    begunAt,
    endedAt: begunAt + 1,
    outcome: 'acknowledged',
    status: 200,
    ...more,
  });
  const version = (at: number, kind: string, names: string[], updateId = `u${at}`): RecordedVersion => ({
    version: at,
    kind,
    updateId,
    names,
  });
  const imports = [call('import', 1, { mark: 'a' }), call('import', 3, { mark: 'b' })];
  const update = [
    call('start', 5, { updateId: 'u' }),
    call('write', 7, { updateId: 'u', mark: 'c', sequence: 1 }),
    call('write', 9, { updateId: 'u', mark: 'd', sequence: 2 }),
    call('end', 11, { updateId: 'u' }),
  ];
  const sound = {
    calls: [...imports, ...update, call('read', 13, { names: ['d'] })],
    versions: [version(1, 'import', ['a']), version(2, 'import', ['b']), version(3, 'update', ['d'], 'u')],
    finalNames: ['d'],
  };

  test('accepts a valid history', () => {
    expect(findViolations(sound)).toEqual([]);
  });

  test.each<[string, Partial<typeof sound>]>([
    [
      'an import that was refused',
      { calls: sound.calls.map((each) => (each.mark === 'a' ? { ...each, outcome: 'refused', status: 503 } : each)) },
    ],
    ['an import that is lost', { versions: [version(1, 'import', ['b']), version(2, 'update', ['d'], 'u')] }],
    [
      'imports in the wrong order',
      { versions: [version(1, 'import', ['b']), version(2, 'import', ['a']), version(3, 'update', ['d'], 'u')] },
    ],
    ['a state that is not the last version', { finalNames: ['a'] }],
    [
      'a write that an older one has replaced',
      { versions: [...sound.versions.slice(0, 2), version(3, 'update', ['c'], 'u')], finalNames: ['c'] },
    ],
    ['a read of what was replaced', { calls: [...sound.calls, call('read', 20, { names: ['a'] })] }],
    ['a rename that nobody asked for', { versions: [...sound.versions, version(4, 'rename', ['d'])] }],
    ['an unexpected response', { calls: [...sound.calls, call('read', 20, { outcome: 'refused', status: 500 })] }],
  ])('finds %s', (_what, change) => {
    expect(findViolations({ ...sound, ...change })).not.toEqual([]);
  });
});

await describeWithTools('one stack, many clients, three replicas', ['redis-server'], () => {
  /** The first two hand everything to the workers; the last one commits small bodies itself. */
  const directBytes = ['1', '1', '262144'];
  const replicas: Replica[] = [];
  let cluster: Cluster;
  let database: TestDatabase;
  let dataDir: string;
  let token: string;

  beforeAll(async () => {
    cluster = await startAppCluster();
    database = await createTestDatabase();
    dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-history-'));
    for (const bytes of directBytes) {
      const gate = await openGatedBlobs(path.join(dataDir, 'blobs'));
      const app = await createTestApp({
        database,
        dataDir,
        settings: {
          HOLDFAST_DIRECT_BYTES: bytes,
          HOLDFAST_INLINE_BYTES: '1',
          jobWaitSeconds: 1,
          HOLDFAST_JOB_CONCURRENCY: '2',
          HOLDFAST_DATABASE_POOL_SIZE: '16',
        },
        overrides: { blobs: gate.blobs },
      });
      await app.app.listen({ host: '127.0.0.1', port: 0 });
      const address = app.app.server.address();
      replicas.push({ app, gate, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}` });
    }
    token = await (replicas[0] as Replica).app.createUser('history', 'admin');
  });
  afterAll(async () => {
    for (const { app, gate } of replicas) {
      gate.open();
      await app[Symbol.asyncDispose]();
    }
    await database?.[Symbol.asyncDispose]();
    await cluster?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test.each(Array.from({ length: rounds }, (_, round) => [round]))(
    'round %i: the versions match the acknowledged calls in order, and include no rejected call',
    async (round) => {
      const history = new StackRace(replicas, token, `r${round}-${seed}`, randomOf(seed + round));
      await history.begin();
      await history.race();
      const found = await history.collect();
      const violations = findViolations(found);
      if (violations.length > 0) violations.push(`seed ${seed}, round ${round}`, ...found.calls.map(printCall));
      expect(violations).toEqual([]);
      expect(found.calls.filter(({ outcome }) => outcome === 'acknowledged').length).toBeGreaterThan(10);
      await history.deleteWhileOthersWrite();
    },
  );
});

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApi } from '../../../src/api/main.ts';
import { jobNames } from '../../../src/shared/jobs/job-list.ts';
import { BlobStoreUnavailableError } from '../../../src/shared/platform/blobs/blob-store.ts';
import { parseConfig } from '../../../src/shared/platform/config/config.ts';
import { createLogger } from '../../../src/shared/platform/logger/logger.ts';
import { startWorker } from '../../../src/workers/main.ts';
import { chunksOf, readAll } from '../../contracts/blob-store-suite.ts';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { query } from '../../support/database.ts';
import { creation } from '../../support/journal-entries.ts';
import { createStack, ok, startUpdate } from '../../support/state.ts';
import { createTestApp, masterKeys, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { append, saveState, saveVerbatim } from '../../support/update-calls.ts';

await describeWithTools('metrics of a cluster', ['redis-server', 'versitygw'], () => {
  let cluster: Cluster;
  let app: TestApp;
  let worker: Awaited<ReturnType<typeof startWorker>>;
  let api: Awaited<ReturnType<typeof startApi>>;

  beforeAll(async () => {
    cluster = await startAppCluster({ s3: 'versitygw', settings: { HOLDFAST_INLINE_BYTES: '1' } });
    app = await createTestApp();
    const config = parseConfig({
      HOLDFAST_DATABASE_URL: app.database.url,
      HOLDFAST_DATA_DIR: app.dataDir,
      HOLDFAST_REDIS_URL: cluster.redisUrl(app.database),
      HOLDFAST_MASTER_KEYS: masterKeys,
      HOLDFAST_LISTEN: '127.0.0.1:0',
      HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
      HOLDFAST_SHUTDOWN_SECONDS: '5',
    });
    const logger = createLogger({ level: 'silent' });
    worker = await startWorker(config, logger);
    api = await startApi(config, logger);
  });
  afterAll(async () => {
    await api.context.lifecycle.close();
    await worker.context.lifecycle.close();
    await app[Symbol.asyncDispose]();
    await cluster.stop();
  });

  async function metrics(url: string): Promise<(name: string) => number | undefined> {
    const response = await fetch(`${url}/metrics`);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const lines = (await response.text()).split('\n');
    return (name) => {
      const line = lines.find((one) => one.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    };
  }

  test('a worker has failures of all jobs from its start, so that the first one is an increase', async () => {
    const figure = await metrics(worker.url);
    expect(jobNames).toContain('rename-stack');
    for (const job of jobNames)
      expect([job, figure(`holdfast_jobs_ended_total{name="${job}",outcome="failed"}`)]).toEqual([job, 0]);
    const failing = () => metrics(worker.url).then((now) => now('holdfast_task_failing{name="drop-old-audit"}'));
    expect(await failing()).toBe(0);
    const failed = `insert into maintenance_runs (name, last_started_at, failed_at) values ('drop-old-audit', now(), now())
      on conflict (name) do update set failed_at = now()`;
    await query(app, failed);
    await until(async () => (await failing()) === 1, 'the failure is reported');
  });

  test('api and worker report both queues, Redis and bytes in flight', async () => {
    for (const url of [api.management as string, worker.url]) {
      await until(async () => ((await metrics(url))('holdfast_redis_memory_bytes') ?? 0) > 100_000, 'a look was had');
      const figure = await metrics(url);
      for (const queue of ['small', 'large']) {
        for (const name of ['waiting', 'active', 'failed', 'oldest_waiting_seconds'])
          expect([name, figure(`holdfast_jobs_${name}{queue="${queue}"}`)]).toEqual([name, 0]);
      }
      expect(figure('holdfast_payload_store_bytes')).toBe(0);
      expect(figure('holdfast_redis_up')).toBe(1);
      expect(figure('holdfast_redis_memory_limit_bytes')).toBe(0);
      expect(figure('holdfast_redis_round_trip_seconds')).toBeGreaterThan(0);
      expect(figure('holdfast_database_connections_idle')).toBeGreaterThanOrEqual(0);
    }
  });

  test('commits are counted by kind in the API that answered them', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    await ok(saveVerbatim(app, update, 1));
    await ok(saveVerbatim(app, update, 2));
    const journaled = await startUpdate(app, await createStack(app), { journal: true });
    await ok(append(app, journaled, creation(1, 'r', stack)));
    const text = await app.context.metrics.registry.metrics();
    for (const [kind, count] of [
      ['full', 1],
      ['verbatim', 2],
      ['journal', 1],
    ])
      expect(text).toContain(`holdfast_commit_seconds_count{kind="${kind}"} ${count}\n`);
  });

  test('blob operations are counted by kind', async () => {
    const { blobs, metrics } = app.context;
    const counts = async (): Promise<(number | undefined)[]> => {
      const text = await metrics.registry.metrics();
      return ['put', 'open', 'stat', 'delete'].map((op) =>
        Number(new RegExp(`holdfast_blob_seconds_count{op="${op}"} (\\d+)`).exec(text)?.[1] ?? 0),
      );
    };
    const before = await counts();
    await blobs.put('metered', chunksOf(Buffer.from('bytes')));
    expect((await readAll(await blobs.open('metered'))).toString()).toBe('bytes');
    await blobs.stat('metered');
    await blobs.delete('metered');
    await expect(blobs.open('metered')).rejects.toThrow();
    const after = await counts();
    expect(after.map((count, index) => Number(count) - Number(before[index]))).toEqual([1, 2, 1, 1]);
    // A missing object is not a fault.
    expect(await metrics.registry.metrics()).not.toMatch(/^holdfast_blob_errors_total\{/m);
  });

  test('failed blob operations are counted by fault', async () => {
    await cluster.s3?.kill();
    try {
      await expect(app.context.blobs.stat('any')).rejects.toThrow(BlobStoreUnavailableError);
      await expect(app.context.blobs.check(1_000)).rejects.toThrow(BlobStoreUnavailableError);
    } finally {
      await cluster.s3?.restart();
    }
    const text = await app.context.metrics.registry.metrics();
    expect(text).toMatch(/^holdfast_blob_errors_total\{op="stat",error="unreachable"\} 1$/m);
    expect(text).toMatch(/^holdfast_blob_errors_total\{op="check",error="(unreachable|timeout)"\} 1$/m);
  });

  test('both report that Redis is away and stay healthy', async () => {
    await cluster.redis.kill();
    try {
      for (const url of [api.management as string, worker.url]) {
        await until(async () => (await metrics(url))('holdfast_redis_up') === 0, 'away');
        expect((await fetch(`${url}/healthz`)).status).toBe(200);
        expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject(
          url === worker.url ? { redis: 'unreachable' } : { queue: 'unreachable' },
        );
      }
    } finally {
      await cluster.redis.restart();
    }
    for (const url of [api.management as string, worker.url])
      await until(async () => (await metrics(url))('holdfast_redis_up') === 1, 'up again');
  });
});

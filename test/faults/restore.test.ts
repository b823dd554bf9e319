import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { ResponseError } from '../../bench/support/raw-client.ts';
import { runAdmin } from '../../testkit/admin-command.ts';
import type { Cluster } from '../../testkit/cluster.ts';
import { describePostgres, type PostgresSpec } from '../../testkit/cluster-postgres.ts';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { copyRunningPostgres, putBack } from '../../testkit/postgres-copy.ts';
import { copyPreparedPostgres } from '../../testkit/postgres-template.ts';
import { until } from '../../testkit/until.ts';
import { query, reconcileBlobs } from './support/audit.ts';
import { documentOf } from './support/documents.ts';
import { reportLoss } from './support/loss-audit.ts';
import { PatientClient } from './support/patient-client.ts';
import { readState } from './support/pipelines.ts';
import { goOn, startSmallCluster } from './support/small-cluster.ts';
import { type AnyWatched, watchedMix } from './support/watched-pipelines.ts';

// A copy of the database is made while pipelines run, and takes the place of the database while others run. The bucket stays as it is.

let home: string;
let spec: PostgresSpec;
let postgres: ClusterProcess;
let cluster: Cluster;
let pipelines: AnyWatched[] = [];
const crashes: string[] = [];
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-restore-'));
  process.once('exit', () => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  await copyPreparedPostgres(home);
  spec = await describePostgres(home, (await findFixedPorts(1))[0] as number);
  postgres = new ClusterProcess(spec, () => {});
  await postgres.start();
  cluster = await startSmallCluster(spec.url, { apis: 2, crashes });
});
afterEach(async () => {
  await Promise.allSettled(pipelines.map((pipeline) => pipeline.abandon()));
});
afterAll(async () => {
  await cluster?.stop();
  await postgres?.kill();
  await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
});

const losses = () => query(cluster, `select details from audit_events where action = 'database.loss'`);

/** A way to make a copy and to put it back. */
interface Way {
  copy(): Promise<void>;
  putBack(): Promise<void>;
}

const physical: Way = {
  copy: () => copyRunningPostgres(spec, copyDir()),
  async putBack() {
    await postgres.kill();
    await putBack(copyDir(), spec.dataDir);
    await postgres.start();
  },
};
const copyDir = (): string => join(dirname(spec.dataDir), 'copy');

/** Both need that nobody is connected to the database. */
const logical: Way = {
  copy: () => inQuiet('create database earlier template postgres'),
  putBack: () =>
    inQuiet(`alter database postgres rename to later_${Date.now()}`, 'alter database earlier rename to postgres'),
};

async function inQuiet(...statements: string[]): Promise<void> {
  const url = new URL(spec.url);
  url.pathname = '/template1';
  const client = new pg.Client({ connectionString: url.toString() });
  await client.connect();
  const allow = (isAllowed: boolean) => client.query(`alter database postgres allow_connections ${isAllowed}`);
  try {
    await allow(false);
    const end = `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = 'postgres'`;
    await until(async () => (await client.query(end)).rows.length === 0, 'nobody is connected');
    for (const statement of statements) await client.query(statement);
    await allow(true);
  } finally {
    await client.end();
  }
}

/** Servers go on: they notice the restore themselves. */
async function restoreBeneath(way: Way): Promise<void> {
  const before = (await losses()).length;
  await way.putBack();
  await until(async () => (await losses()).length > before, 'the restore is noticed', { timeoutMs: 300_000 });
}

/** As docs/backup.md says. */
async function restoreInOrder(way: Way): Promise<void> {
  // While there is no worker, a replica that stops waits for its jobs.
  for (const processes of [cluster.apis, cluster.workers]) await Promise.all(processes.map((each) => each.stop()));
  await way.putBack();
  await reconcileBlobs(cluster);
  expect(await runAdmin(cluster, 'after-restore')).toMatch(/^Ended [1-9]\d* updates?\. Their stacks need/);
  await Promise.all([...cluster.workers, ...cluster.apis].map((each) => each.start()));
}

const ways: [string, Way, (way: Way) => Promise<void>][] = [
  ['a base backup beneath running servers', physical, restoreBeneath],
  ['a base backup while servers are stopped', physical, restoreInOrder],
  ['a logical copy beneath running servers', logical, restoreBeneath],
  ['a logical copy while servers are stopped', logical, restoreInOrder],
];
test.each(ways)(
  '%s: updates with lost writes end with the reason, and others go on',
  async (name, way, restore) => {
    pipelines = watchedMix(cluster, name.replaceAll(' ', '-'));
    await Promise.all(pipelines.map((pipeline) => pipeline.start()));
    await goOn(pipelines);
    await way.copy();
    await goOn(pipelines);
    await restore(way);
    const backAt = Date.now();
    await goOn(pipelines);
    await Promise.all(pipelines.map((pipeline) => pipeline.stop()));
    const report = await reportLoss(cluster, pipelines, backAt);
    const counts = { ...report, concealed: report.concealed.length };
    process.stderr.write(`restore, ${name}: ${JSON.stringify(counts)}\n`);
    expect(report.concealed).toEqual([]);
    // Otherwise this has shown nothing.
    expect(report.lost).toBeGreaterThan(20);
    expect(report.reported).toBeGreaterThan(0);
    expect(crashes).toEqual([]);
    const client = new PatientClient(cluster.url, cluster.token);
    for (const { stackPath } of pipelines) await client.complete(await client.startUpdate(stackPath));
    expect(await query(cluster, 'select name from stacks where active_update_id is not null')).toEqual([]);
  },
  900_000,
);

test('a state whose blob did not come back is reported, and the others are read', async () => {
  const client = new PatientClient(cluster.url, cluster.token);
  const stacks = await Promise.all(
    ['here', 'gone'].map((name) => client.createStack(cluster.organization, 'blobs', name)),
  );
  for (const path of stacks) {
    const update = await client.startUpdate(path);
    await client.checkpoint(update, documentOf(60_000, path));
    await client.complete(update);
  }
  const [here, gone] = stacks as [string, string];
  const [row] = await query<{ key: string }>(
    cluster,
    `select c.blob_key as key from stacks s join checkpoints c on c.id = s.checkpoint_id where s.name = 'gone'`,
  );
  const { bucket, dataDir } = cluster.s3Access;
  await rm(join(dataDir, bucket, row?.key ?? 'none'));
  expect((await reconcileBlobs(cluster)).missing).toBe(1);
  expect(await readState(cluster, `${here}/export`)).toContain('here');
  const refusal = await client.once('GET', `${gone}/export`).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ResponseError);
  expect(String(refusal)).toContain('the state of stack dev-org/blobs/gone at version 1 is damaged and is not used');
});

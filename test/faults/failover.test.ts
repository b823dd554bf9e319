import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Cluster } from '../../testkit/cluster.ts';
import { type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';
import { until } from '../../testkit/until.ts';
import { findLostWrites, query } from './support/audit.ts';
import { PatientClient } from './support/patient-client.ts';
import { type Pipeline, pipelineMix } from './support/pipelines.ts';
import { countAcknowledged, goOn, startSmallCluster, urlOfPair } from './support/small-cluster.ts';

// A small cluster on two Postgres servers, the second of which becomes the primary. Every commit waits for both.

let pair: PostgresPair;
let cluster: Cluster;
let pipelines: Pipeline[] = [];
/** Updates that began before this time may be ended: the new primary may lack what they have saved. */
let lossNotedAt = 0;
const crashes: string[] = [];
beforeAll(async () => {
  pair = await startPostgresPair();
  cluster = await startSmallCluster(urlOfPair(pair), { crashes });
  const { organization, reviewerToken, token, url } = cluster;
  const mix = pipelineMix({ organization, reviewerToken, token, url, clockSetAt: () => lossNotedAt });
  pipelines = mix.filter(({ name }) =>
    /^(journal-[0-5]|delta-(2000|60000)$|full-(2000|150000)$|import-4000$)/.test(name),
  );
  await Promise.all(pipelines.map((pipeline) => pipeline.start()));
});
afterAll(async () => {
  await Promise.allSettled(pipelines.map((pipeline) => pipeline.abandon()));
  await cluster?.stop();
  await pair?.[Symbol.asyncDispose]();
});

test('the primary dies under load, and the standby takes over', async () => {
  await goOn(pipelines);
  await pair.primary.kill();
  lossNotedAt = Number.POSITIVE_INFINITY;
  await pair.promote();
  const losses = `select 1 from audit_events where action = 'database.loss'`;
  const isNoted = async () => (await query({ databaseUrl: pair.standbyUrl }, losses)).length > 0;
  await until(isNoted, 'the failover is noticed', { timeoutMs: 300_000 });
  lossNotedAt = Date.now();
  await goOn(pipelines);
  await Promise.all(pipelines.map((pipeline) => pipeline.stop()));
  expect(pipelines.flatMap(({ counts }) => counts.wrongAnswers)).toEqual([]);
  expect(crashes).toEqual([]);
  expect(await query({ databaseUrl: pair.standbyUrl }, losses)).toHaveLength(1);
}, 900_000);

test('every acknowledged write is on the new primary', async () => {
  expect(await findLostWrites({ ...cluster, databaseUrl: pair.standbyUrl }, pipelines, [])).toEqual([]);
  process.stderr.write(`fail-over: ${countAcknowledged(pipelines)} acknowledged writes, none lost\n`);
});

test('no stack is locked for longer than a lease', async () => {
  const now = { databaseUrl: pair.standbyUrl };
  await query(now, `update updates set expires_at = clock_timestamp() - interval '1 second' where status = 'running'`);
  const client = new PatientClient(cluster.url, cluster.token);
  for (const { stackPath } of pipelines) await client.complete(await client.startUpdate(stackPath), 'failed');
  expect(await query(now, 'select name from stacks where active_update_id is not null')).toEqual([]);
});

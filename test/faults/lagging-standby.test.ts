import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Cluster } from '../../testkit/cluster.ts';
import { type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';
import { until } from '../../testkit/until.ts';
import { query } from './support/audit.ts';
import { reportLoss } from './support/loss-audit.ts';
import { PatientClient } from './support/patient-client.ts';
import { countAcknowledged, goOn, startSmallCluster, urlOfPair } from './support/small-cluster.ts';
import { type AnyWatched, watchedMix } from './support/watched-pipelines.ts';

// The standby is promoted while it lacks what was acknowledged last. No client may take its update for complete then.

let pair: PostgresPair;
let cluster: Cluster;
let pipelines: AnyWatched[] = [];
const crashes: string[] = [];
beforeAll(async () => {
  pair = await startPostgresPair({ isSynchronous: false });
  cluster = await startSmallCluster(urlOfPair(pair), { crashes });
  pipelines = watchedMix(cluster, 'lag');
  await Promise.all(pipelines.map((pipeline) => pipeline.start()));
});
afterAll(async () => {
  await Promise.allSettled(pipelines.map((pipeline) => pipeline.abandon()));
  await cluster?.stop();
  await pair?.[Symbol.asyncDispose]();
});

/** Waits for answers of the killed primary that are still on their way: no server accepts writes meanwhile. */
const answersArrive = async (): Promise<void> => {
  const successes = () =>
    pipelines.flatMap(({ updates }) => updates).filter(({ end }) => end?.kind === 'succeeded').length +
    countAcknowledged(pipelines);
  let seen = { successes: -1, at: 0 };
  await until(() => {
    if (successes() !== seen.successes) seen = { successes: successes(), at: Date.now() };
    return Date.now() - seen.at > 15_000;
  }, 'no call succeeds any more');
};

test('updates whose acknowledged writes the new primary lacks end with the reason, and others go on', async () => {
  await goOn(pipelines);
  await pair.cutOff();
  await goOn(pipelines);
  await pair.primary.kill();
  await answersArrive();
  const backAt = Date.now();
  await pair.promote();
  const now = { ...cluster, databaseUrl: pair.standbyUrl };
  const losses = `select 1 from audit_events where action = 'database.loss'`;
  await until(async () => (await query(now, losses)).length > 0, 'the failover is noticed', { timeoutMs: 300_000 });
  await goOn(pipelines);
  await Promise.all(pipelines.map((pipeline) => pipeline.stop()));
  const report = await reportLoss(now, pipelines, backAt);
  process.stderr.write(
    `fail-over to a lagging standby: ${JSON.stringify({ ...report, concealed: report.concealed.length })}\n`,
  );
  expect(report.concealed).toEqual([]);
  // Otherwise this has shown nothing.
  expect(report.lost).toBeGreaterThan(20);
  expect(report.reported).toBeGreaterThan(0);
  expect(await query(now, losses)).toHaveLength(1);
  expect(crashes).toEqual([]);
}, 900_000);

test('no stack stays locked, and each can be updated', async () => {
  const now = { databaseUrl: pair.standbyUrl };
  const client = new PatientClient(cluster.url, cluster.token);
  for (const { stackPath } of pipelines) await client.complete(await client.startUpdate(stackPath));
  expect(await query(now, 'select name from stacks where active_update_id is not null')).toEqual([]);
});

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { RawClient } from '../../bench/support/raw-client.ts';
import { holdfastOutput } from '../../testkit/admin-command.ts';
import { type Cluster, startCluster } from '../../testkit/cluster.ts';
import { type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { tuned } from '../../testkit/tuned.ts';
import { findLostWrites } from './support/audit.ts';
import { type Pipeline, pipelineMix } from './support/pipelines.ts';
import { countAcknowledged, goOn } from './support/small-cluster.ts';

// The site that writes is lost under load, with its database, its bucket and its servers. The other one, which has a
// standby of Postgres and a bucket, is promoted, and clients find it at the address of the first.

const bucket = 'second-site';
const masterKeys = `site:${randomBytes(32).toString('base64')}`;

let home: string;
let pair: PostgresPair;
let secondS3: S3Server;
let first: Cluster;
let second: Cluster | undefined;
let pipelines: Pipeline[] = [];
/** Updates that began before this time are ended by the promotion. */
let promotedAt = 0;
beforeAll(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'holdfast-second-site-'));
  [pair, secondS3] = await Promise.all([startPostgresPair(), startS3Server('versitygw')]);
  await secondS3.createBucket(bucket);
  const profiles = path.join(home, 'credentials');
  await writeFile(
    profiles,
    `[second]\naws_access_key_id = ${secondS3.accessKeyId}\naws_secret_access_key = ${secondS3.secretAccessKey}\n`,
  );
  first = await startSite(pair.primaryUrl, {
    HOLDFAST_SECOND_STORE: `s3://${bucket}?endpoint=${secondS3.endpoint}&region=${secondS3.region}&path-style=true&profile=second`,
    AWS_SHARED_CREDENTIALS_FILE: profiles,
  });
  const { organization, reviewerToken, token, url } = first;
  const mix = pipelineMix({ organization, reviewerToken, token, url, clockSetAt: () => promotedAt });
  pipelines = mix.filter(({ name }) =>
    /^(journal-[0-5]|delta-(2000|60000)$|full-(2000|150000)$|import-4000$)/.test(name),
  );
  await Promise.all(pipelines.map((pipeline) => pipeline.start()));
});
afterAll(async () => {
  await Promise.allSettled(pipelines.map((pipeline) => pipeline.abandon()));
  await second?.stop();
  await first?.stop();
  await secondS3?.stop();
  await pair?.[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

/** The address of the lost site leads to the other one, as a change of DNS does. */
async function forward(from: number, to: number): Promise<AsyncDisposable> {
  const server = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.pipe(upstream).pipe(client);
  });
  server.listen(from, '127.0.0.1');
  await once(server, 'listening');
  return { [Symbol.asyncDispose]: async () => void server.close() };
}

function startSite(databaseUrl: string, settings: Record<string, string>): Promise<Cluster> {
  return startCluster({
    ...{ apis: 1, workers: 1, s3Kind: 'versitygw', databaseUrl },
    settings: {
      ...{
        HOLDFAST_INLINE_BYTES: '4096',
        HOLDFAST_DIRECT_BYTES: '16384',
        ...tuned({ sweepSeconds: 2, eventArchiveDelaySeconds: 4, databaseConnectMs: 30_000 }),
      },
      HOLDFAST_MASTER_KEYS: masterKeys,
      ...settings,
    },
  });
}

/** The second site's own bucket. */
const secondSettings = () => ({
  HOLDFAST_S3_BUCKET: bucket,
  HOLDFAST_S3_ENDPOINT: secondS3.endpoint,
  HOLDFAST_S3_REGION: secondS3.region,
  AWS_ACCESS_KEY_ID: secondS3.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secondS3.secretAccessKey,
});

test('the promoted site has every acknowledged write, and pipelines go on there', async () => {
  await goOn(pipelines);
  promotedAt = Number.POSITIVE_INFINITY;
  await Promise.all([...first.parts, pair.primary].map((part) => part.kill()));
  const lostAt = performance.now();
  const promoted = await holdfastOutput(
    { databaseUrl: pair.standbyUrl },
    secondSettings(),
    ...['admin', 'site', 'promote', '--yes', '--json'],
  );
  expect(JSON.parse(promoted)).toMatchObject({ role: 'primary', term: 1 });
  second = await startSite(pair.standbyUrl, secondSettings());
  const seconds = Math.ceil((performance.now() - lostAt) / 1000);
  const there = { ...second, token: first.token };
  // Nothing has been written there yet.
  expect(await findLostWrites(there, pipelines, [])).toEqual([]);
  promotedAt = Date.now();
  await using _ = await forward(Number(new URL(first.url).port), Number(new URL(second.url).port));
  await goOn(pipelines);
  await Promise.all(pipelines.map((pipeline) => pipeline.stop()));
  expect(pipelines.flatMap(({ counts }) => counts.wrongAnswers)).toEqual([]);
  expect(await findLostWrites(there, pipelines, [])).toEqual([]);
  process.stderr.write(
    `second site: ${countAcknowledged(pipelines)} acknowledged writes, none lost; it served after ${seconds} s\n`,
  );
}, 900_000);

test('the lost site comes back, and refuses writes', async () => {
  await pair.primary.start();
  // A commit would wait for the standby without end. This operator does without it.
  const client = new pg.Client({ connectionString: pair.primaryUrl });
  await client.connect();
  await client.query("alter system set synchronous_standby_names = ''");
  await client.query('select pg_reload_conf()');
  await client.end();
  await Promise.all([first.redis, first.s3].map((part) => part.start()));
  await Promise.all([...first.apis, ...first.workers].map((part) => part.start()));
  const writer = new RawClient(first.apiUrls[0] as string, first.token);
  const write = writer.once('POST', `/api/stacks/${first.organization}/points`, { stackName: 'late' });
  await expect(write).rejects.toMatchObject({ status: 503, message: expect.stringContaining('another site') });
  const [{ stackPath }] = pipelines as [Pipeline];
  expect(JSON.parse(await writer.call('GET', stackPath))).toMatchObject({ stackName: expect.any(String) });
  // An export would have to be recorded.
  const exported = writer.once('GET', `${stackPath}/export`);
  await expect(exported).rejects.toMatchObject({ status: 503, message: expect.stringContaining('another site') });
});

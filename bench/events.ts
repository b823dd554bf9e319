import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { startS3Server } from '../testkit/s3-server.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { engineEvents } from './support/engine-events.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, percentile, printTable } from './support/measures.ts';
import { RawClient, type Update } from './support/raw-client.ts';

/**
 * Archived events: their size, and the time of their pages.
 * Bytes kept against bytes sent, for updates of several sizes, and pages of 500 from rows, and from segments in local files
 * and on S3, in one run.
 * Usage: npm run bench events -- [--resources 20,500,5000] [--small 30] [--rounds 10]
 *   --small: number of updates of the first size, which together count as one row of the table
 */
const { values } = parseArgs({
  options: {
    resources: { type: 'string', default: '20,500,5000' },
    small: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '10' },
  },
});

const organization = 'dev-org';
const batch = 50;
const sizes = values.resources.split(',').map(Number);
const rounds = Number(values.rounds);
const packTimeoutMs = 600_000;

interface Sample {
  readonly label: string;
  readonly updates: readonly { update: Update; bytes: number; events: number }[];
}

/** The update keeps running. */
async function send(client: RawClient, stack: string, resources: number): Promise<Sample['updates'][number]> {
  const update = await client.startUpdate(stack);
  const events = engineEvents(resources, update.id);
  for (let at = 0; at < events.length; at += batch) {
    const body = Buffer.from(`{"events":[${events.slice(at, at + batch).join(',')}]}`);
    await client.call('POST', `${update.path}/events/batch`, body, { auth: update.lease, gzip: true });
  }
  return { update, events: events.length, bytes: events.reduce((sum, event) => sum + Buffer.byteLength(event), 0) };
}

interface Reading {
  readonly parameters?: string;
  /** As the CLI asks for. */
  readonly encoding?: 'gzip';
}

/** Returns the time of each page, in ms. */
async function readPages(
  { token: auth, url }: { readonly url: string; readonly token: string },
  { update }: { update: Update },
  { encoding, parameters = '' }: Reading = {},
): Promise<number[]> {
  const times: number[] = [];
  const headers = {
    accept: 'application/vnd.pulumi+9',
    authorization: `token ${auth}`,
    'accept-encoding': encoding ?? 'identity',
  };
  for (let round = 0; round < rounds; round++) {
    for (let token: string | null = ''; token !== null; ) {
      const sent = performance.now();
      const path: string = `${url}${update.path}/events?continuationToken=${token}&${parameters}`;
      const text: string = await (await fetch(path, { headers })).text();
      const took = performance.now() - sent;
      const { events, continuationToken } = JSON.parse(text) as { events: object[]; continuationToken: string | null };
      if (events.length > 0) times.push(took);
      token = events.length > 0 ? continuationToken : null;
    }
  }
  return times;
}

async function measure(store: string, settings: Record<string, string>): Promise<void> {
  await using server = await startOwnHoldfast({
    // Not more often, because the CPU time of sweeps counts, too.
    ...tuned({ sweepSeconds: 10, eventArchiveDelaySeconds: 20 }),
    HOLDFAST_LOG_LEVEL: 'warn',
    ...settings,
  });
  const client = new RawClient(server.url, server.token);
  const data = new DataFolder(server.dataDir);
  const kept: (string | number)[][] = [];
  const pages: (string | number)[][] = [];
  for (const [at, resources] of sizes.entries()) {
    const count = at === 0 ? Number(values.small) : 1;
    const updates: Sample['updates'][number][] = [];
    for (let number = 0; number < count; number++) {
      const stack = await client.createStack(organization, 'bench', `events-${resources}-${number}`);
      updates.push(await send(client, stack, resources));
    }
    const ids = updates.map(({ update }) => update.id);
    const raw = updates.reduce((sum, { bytes }) => sum + bytes, 0);
    const events = updates.reduce((sum, each) => sum + each.events, 0);
    const [sample] = updates as [Sample['updates'][number]];
    const read = async (form: string, what: string, reading: Reading = {}): Promise<void> => {
      const before = await cpuSecondsOf(server.pid());
      const times = await readPages(server, sample, reading);
      const cpuMs = (((await cpuSecondsOf(server.pid())) - before) * 1000) / times.length;
      const count = String(times.length);
      pages.push([
        store,
        String(sample.events),
        form,
        what,
        count,
        percentile(times, 0.5),
        percentile(times, 0.99),
        cpuMs,
      ]);
    };
    const urn = 'urn=urn:pulumi:dev::bench::aws:ec2/instance:Instance::web-7';
    const readAll = async (form: string): Promise<void> => {
      await readPages(server, sample);
      await read(form, 'all');
      await read(form, 'all, gzip', { encoding: 'gzip' });
      await read(form, 'newest first', { parameters: 'order=desc' });
      await read(form, 'one resource', { parameters: urn });
    };
    // Rows are read while nothing is archived: the updates still run.
    await readAll('rows');
    const rowBytes = await data.eventRowBytes(ids);
    const cpu = await cpuSecondsOf(server.pid());
    for (const { update } of updates) await client.complete(update);
    await until(async () => (await data.eventRowBytes(ids)) === 0, 'the events are archived', {
      timeoutMs: packTimeoutMs,
      everyMs: 500,
    });
    const seconds = (await cpuSecondsOf(server.pid())) - cpu;
    const { index, segments, stored } = await data.segmentBytes(ids);
    kept.push([
      store,
      `${count} × ${events / count}`,
      raw / 1e6,
      rowBytes / 1e6,
      stored / 1e6,
      index / 1e6,
      ((stored + index) / raw) * 100,
      String(segments),
      (seconds * 1e9) / raw,
    ]);
    await readAll('segments');
  }
  console.log(`\n${store}, load ${await loadAverage()}\n`);
  printTable(
    ['store', 'updates × events', 'raw MB', 'rows MB', 'stored MB', 'index MB', 'kept %', 'segments', 'CPU ms/MB'],
    kept,
  );
  console.log();
  printTable(['store', 'events', 'from', 'pages', 'number', 'p50 ms', 'p99 ms', 'server CPU ms'], pages);
}

await measure('files', {});
const s3 = await startS3Server('versitygw');
try {
  await s3.createBucket('bench');
  await measure('S3', {
    HOLDFAST_S3_BUCKET: 'bench',
    HOLDFAST_S3_ENDPOINT: s3.endpoint,
    HOLDFAST_S3_REGION: s3.region,
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
  });
} finally {
  await s3.stop();
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/shared/platform/db/embedded-postgres.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { type Cluster, startCluster } from '../testkit/cluster.ts';
import { PulumiWorkspace } from '../testkit/pulumi-cli.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { cpuSecondsOf, loadAverage, printTable } from './support/measures.ts';
import { postgresCpuSeconds } from './support/process-cpu.ts';
import { S3Meter, type S3Traffic } from './support/s3-meter.ts';

/**
 * What an update costs a cluster: requests to S3, bytes of the write-ahead log and CPU time by part.
 * The real CLI creates stacks, changes a share of their resources again and again, and previews. Each kind of run is measured with
 * the work that follows it, less what an idle cluster costs in the same time.
 * Usage: npm run bench cost -- [--resources 100] [--changed 10] [--bytes 1000] [--stacks 4] [--updates 10] [--after 60]
 */
const { values } = parseArgs({
  options: {
    resources: { type: 'string', default: '100' },
    changed: { type: 'string', default: '10' },
    bytes: { type: 'string', default: '1000' },
    stacks: { type: 'string', default: '4' },
    updates: { type: 'string', default: '10' },
    after: { type: 'string', default: '60' },
  },
});
const [resources, changed, bytes, stacks, updates] = [
  Number(values.resources),
  Number(values.changed),
  Number(values.bytes),
  Number(values.stacks),
  Number(values.updates),
];
const afterMs = Number(values.after) * 1000;
const home = await mkdtemp(join(tmpdir(), 'holdfast-cost-'));

/** Seconds of CPU, and bytes of the log, the database and the bucket. */
interface Usage extends S3Traffic {
  readonly api: number;
  readonly workers: number;
  readonly postgres: number;
  readonly redis: number;
  readonly proxy: number;
  readonly walBytes: number;
  readonly databaseBytes: number;
  readonly atMs: number;
}

async function readUsage(cluster: Cluster, meter: S3Meter): Promise<Usage> {
  const client = new pg.Client({ connectionString: cluster.databaseUrl, application_name: 'bench' });
  await client.connect();
  const { rows } = await client.query<{ wal: number; size: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
       pg_database_size(current_database())::float8 as size`,
  );
  await client.end();
  const cpu = async (parts: readonly { readonly pid: number }[]): Promise<number> =>
    (await Promise.all(parts.map(({ pid }) => cpuSecondsOf(pid)))).reduce((sum, each) => sum + each, 0);
  return {
    ...meter.read(),
    api: await cpu(cluster.apis),
    workers: await cpu(cluster.workers),
    postgres: await postgresCpuSeconds(home),
    redis: await cpu([cluster.redis]),
    proxy: await cpu([cluster.proxy]),
    walBytes: rows[0]?.wal ?? Number.NaN,
    databaseBytes: rows[0]?.size ?? Number.NaN,
    atMs: performance.now(),
  };
}

/** The second reading less the first. */
function difference(before: Usage, after: Usage): Usage {
  return Object.fromEntries(
    Object.entries(after).map(([key, value]) => [key, value - before[key as keyof Usage]]),
  ) as unknown as Usage;
}

/** Less that of an idle cluster for as long. */
function ofOneRun(used: Usage, idle: Usage, count: number): Usage {
  const share = used.atMs / idle.atMs;
  return Object.fromEntries(
    Object.entries(used).map(([key, value]) => [key, (value - idle[key as keyof Usage] * share) / count]),
  ) as unknown as Usage;
}

function programOf(revision: number): ReturnType<typeof stashProgram> {
  const filler = 'a value of an ordinary resource, such as an address or a policy; '.repeat(Math.ceil(bytes / 65));
  return stashProgram({
    project: 'bench',
    count: resources,
    inputOf: (index) => {
      const first = (revision * changed) % resources;
      const isChanged = revision > 0 && (index - first + resources) % resources < changed;
      return `${isChanged ? revision : 0} ${index} ${filler.slice(0, bytes)}`;
    },
  });
}

await using cleanUp = new AsyncDisposableStack();
cleanUp.defer(() => rm(home, { recursive: true, force: true }));
const postgres = await startEmbeddedPostgres(join(home, 'postgres'), createLogger({ level: 'warn' }));
cleanUp.defer(() => postgres.stop());
const meter = cleanUp.use(await S3Meter.start());
const throughMeter = (_: number, endpoint: string): Record<string, string> => ({
  HOLDFAST_S3_ENDPOINT: meter.inFrontOf(endpoint),
});
const cluster = cleanUp.use(
  await startCluster({ databaseUrl: postgres.url, apiSettings: throughMeter, workerSettings: throughMeter }),
);
const read = (): Promise<Usage> => readUsage(cluster, meter);
const workspace = cleanUp.use(await PulumiWorkspace.create({ backendUrl: cluster.url, accessToken: cluster.token }));
const up = ['up', '--yes', '--skip-preview'];
const measured: [string, Usage][] = [];
const measure = async (name: string, count: number, work: () => Promise<void>): Promise<void> => {
  const before = await read();
  await work();
  await sleep(afterMs);
  measured.push([name, ofOneRun(difference(before, await read()), idle, count)]);
};

await workspace.runOk(['login']);
await sleep(afterMs);
const first = await read();
await sleep(afterMs);
const idle = difference(first, await read());
const names = Array.from({ length: stacks }, (_, at) => `${cluster.organization}/bench/s${at}`);
await workspace.writeProgram(programOf(0));
await measure('first up', stacks, async () => {
  for (const name of names) {
    await workspace.runOk(['stack', 'init', name]);
    await workspace.runOk([...up, '--stack', name], { timeoutMs: 600_000 });
  }
});
await measure('up', stacks * updates, async () => {
  for (let revision = 1; revision <= updates; revision++) {
    await workspace.writeProgram(programOf(revision));
    for (const name of names) await workspace.runOk([...up, '--stack', name], { timeoutMs: 600_000 });
  }
});
await measure('up without changes', stacks * 2, async () => {
  for (const name of [...names, ...names]) await workspace.runOk([...up, '--stack', name], { timeoutMs: 600_000 });
});
await measure('preview', stacks * 2, async () => {
  for (const name of [...names, ...names]) await workspace.runOk(['preview', '--stack', name], { timeoutMs: 600_000 });
});

console.log(
  `${resources} resources of ${bytes} bytes, ${changed} of them changed by an up; load ${await loadAverage()}\n`,
);
const rows: [string, (usage: Usage) => number][] = [
  ['S3 PUT, POST, LIST', (usage) => usage.writes],
  ['S3 GET, HEAD', (usage) => usage.reads],
  ['S3 DELETE', (usage) => usage.deletes],
  ['KB to S3', (usage) => usage.sentBytes / 1000],
  ['KB from S3', (usage) => usage.receivedBytes / 1000],
  ['KB of write-ahead log', (usage) => usage.walBytes / 1000],
  ['KB of the database', (usage) => usage.databaseBytes / 1000],
  ['CPU ms: api', (usage) => usage.api * 1000],
  ['CPU ms: worker', (usage) => usage.workers * 1000],
  ['CPU ms: Postgres', (usage) => usage.postgres * 1000],
  ['CPU ms: Redis', (usage) => usage.redis * 1000],
  ['CPU ms: proxy', (usage) => usage.proxy * 1000],
];
const hourOfIdle = ofOneRun({ ...idle, atMs: 0 }, { ...idle, atMs: 1 }, idle.atMs / 3_600_000);
printTable(
  ['', ...measured.map(([name]) => name), 'an idle hour'],
  rows.map(([name, of]) => [name, ...measured.map(([, usage]) => of(usage)), of(hourOfIdle)]),
);

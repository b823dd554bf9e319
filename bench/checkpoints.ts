import { createHash } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { type Cluster, startCluster } from '../testkit/cluster.ts';
import type { ClusterProcess } from '../testkit/cluster-process.ts';
import { bareUploads } from './support/bare-upload.ts';
import { cpuSecondsOf, loopDelayOf, median, percentile, printTable } from './support/measures.ts';
import { MemoryWatch } from './support/memory-watch.ts';
import { deploymentOf, RawClient, type Update, verbatimBody } from './support/raw-client.ts';

/**
 * Checkpoints through a cluster, large and small, direct and queued.
 * By number of workers: large ones (memory and event loop delay of each role, time relative to a plain upload) and small
 * ones with growing numbers of callers.
 * Usage: npm run bench checkpoints -- [--large-mb 100] [--at-once 1,4] [--callers 1,16,64] [--seconds 5] [--apis 1]
 *   [--workers 1,2,4] [--built]      --built runs dist/, the output of `npm run build`
 */
const { values } = parseArgs({
  options: {
    'large-mb': { type: 'string', default: '100' },
    'at-once': { type: 'string', default: '1,4' },
    callers: { type: 'string', default: '1,16,64' },
    seconds: { type: 'string', default: '5' },
    apis: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1,2,4' },
    built: { type: 'boolean', default: false },
  },
});

type Role = 'api' | 'worker';
const roles: readonly Role[] = ['api', 'worker'];
const settleMs = 3_000;
/** In MB. The targets are 200 for an API process and 300 for a worker. */
const levels = [150, 200, 250, 300];

const listOf = (text: string): number[] => text.split(',').filter(Boolean).map(Number);
const processesOf = (cluster: Cluster, role: Role) => (role === 'api' ? cluster.apis : cluster.workers);
const urlsOf = (cluster: Cluster, role: Role) => (role === 'api' ? cluster.apiManagementUrls : cluster.workerUrls);

async function cpuSecondsOfAll(processes: readonly ClusterProcess[]): Promise<number> {
  const seconds = await Promise.all(processes.map(({ pid }) => cpuSecondsOf(pid)));
  return seconds.reduce((sum, each) => sum + each, 0);
}

/** Returns the highest event loop delay since the last call, in ms. 10 ms of it are the resolution of the timer. */
async function loopDelayOfAll(urls: readonly string[]): Promise<{ p99: number; max: number }> {
  const delays = await Promise.all(urls.map(loopDelayOf));
  return { p99: Math.max(...delays.map(({ p99 }) => p99)), max: Math.max(...delays.map(({ max }) => max)) };
}

async function openUpdates(
  cluster: Cluster,
  count: number,
  name: string,
): Promise<{ stack: string; update: Update }[]> {
  const client = new RawClient(cluster.url, cluster.token);
  return Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const stack = await client.createStack(cluster.organization, 'bench', `${name}-${at}-${Date.now()}`);
      return { stack, update: await client.startUpdate(stack) };
    }),
  );
}

/** Returns the seconds that saving took, without the client's gzip. */
async function large(cluster: Cluster, megabytes: number, atOnce: number): Promise<number> {
  const client = new RawClient(cluster.url, cluster.token);
  const document = deploymentOf(megabytes * 1e6);
  const digest = createHash('sha256').update(document).digest('hex');
  const body = gzipSync(verbatimBody(document, 1), { level: 1 });
  const targets = await openUpdates(cluster, atOnce, `large-${atOnce}`);
  const bareSeconds = await bareUploads(cluster, document, atOnce);
  await sleep(settleMs);
  for (const role of roles) await loopDelayOfAll(urlsOf(cluster, role));
  const watches = await Promise.all(roles.map(async (role) => MemoryWatch.begin(processesOf(cluster, role))));
  const began = performance.now();
  await Promise.all(targets.map(({ update }) => client.verbatimGzipped(update, body)));
  const seconds = (performance.now() - began) / 1000;
  const delays = await Promise.all(roles.map((role) => loopDelayOfAll(urlsOf(cluster, role))));
  const exportBegan = performance.now();
  const digests = await Promise.all(targets.map(({ stack }) => client.exportDigest(stack)));
  const exportSeconds = (performance.now() - exportBegan) / 1000;
  if (digests.some((each) => each !== digest)) throw new Error('the export differs from what was sent');
  await Promise.all(targets.map(({ update }) => client.complete(update)));
  await sleep(settleMs);
  const memory = await Promise.all(watches.map((watch) => watch.end()));

  console.log(
    `\n${atOnce} × ${megabytes} MB verbatim, ${cluster.workers.length} workers (retries: ${client.retries})\n`,
  );
  const total = (atOnce * document.length) / 1e6;
  printTable(
    ['save s', 'save MB/s', 'bare upload MB/s', 'export s'],
    [[seconds, total / seconds, total / bareSeconds, exportSeconds]],
  );
  console.log();
  printTable(
    ['role', 'RSS idle', 'peak', 'after', ...levels.map((level) => `s > ${level}`), 'loop p99 ms', 'loop max ms'],
    roles.map((role, at) => {
      const { first, highest, last } = memory[at] as (typeof memory)[number];
      const watch = watches[at] as MemoryWatch;
      const delay = delays[at] as (typeof delays)[number];
      return [role, first, highest, last, ...levels.map((level) => watch.secondsAbove(level)), delay.p99, delay.max];
    }),
  );
  console.log();
  for (const [at, role] of roles.entries()) console.log(`${role} RSS: ${watches[at]?.curve(12)}`);
  return seconds;
}

async function small(cluster: Cluster, callers: number, seconds: number, label: string): Promise<(string | number)[]> {
  const client = new RawClient(cluster.url, cluster.token);
  const document = deploymentOf(20_000);
  const targets = await openUpdates(cluster, callers, `small-${label}-${callers}`);
  const latencies: number[] = [];
  const cpu = () => Promise.all(roles.map((role) => cpuSecondsOfAll(processesOf(cluster, role))));
  const before = await cpu();
  const began = performance.now();
  const end = began + seconds * 1000;
  await Promise.all(
    targets.map(async ({ update }) => {
      for (let sequence = 1; performance.now() < end; sequence++) {
        const sent = performance.now();
        await client.verbatim(update, document, sequence);
        latencies.push(performance.now() - sent);
      }
    }),
  );
  const elapsed = (performance.now() - began) / 1000;
  const perThousand = (await cpu()).map((value, at) => ((value - (before[at] as number)) / latencies.length) * 1000);
  await Promise.all(targets.map(({ update }) => client.complete(update)));
  return [
    label,
    String(cluster.workers.length),
    String(callers),
    median(latencies),
    percentile(latencies, 0.99),
    latencies.length / elapsed,
    ...perThousand,
    String(client.retries),
  ];
}

async function withCluster(
  workers: number,
  settings: Record<string, string>,
  work: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  await using cluster = await startCluster({
    apis: Number(values.apis),
    workers,
    settings: { HOLDFAST_LOG_LEVEL: 'warn', ...settings },
    ...(values.built ? { entry: path.join(import.meta.dirname, '..', 'dist', 'main.js') } : {}),
  });
  await sleep(settleMs);
  await work(cluster);
}

const smallRows: (string | number)[][] = [];
const largeRows: (string | number)[][] = [];
const callers = listOf(values.callers);
const megabytes = Number(values['large-mb']);
for (const [round, workers] of listOf(values.workers).entries()) {
  await withCluster(workers, {}, async (cluster) => {
    for (const atOnce of listOf(values['at-once'])) {
      const seconds = await large(cluster, megabytes, atOnce);
      largeRows.push([String(workers), `${atOnce} × ${megabytes} MB`, seconds, (atOnce * megabytes) / seconds]);
    }
    // Workers do not take part in direct writes.
    if (round > 0) return;
    for (const count of callers) smallRows.push(await small(cluster, count, Number(values.seconds), 'direct'));
  });
  if (callers.length === 0) continue;
  await withCluster(workers, { HOLDFAST_DIRECT_BYTES: '1' }, async (cluster) => {
    for (const count of callers) smallRows.push(await small(cluster, count, Number(values.seconds), 'queued'));
  });
}
if (largeRows.length > 0) {
  console.log('\nLarge checkpoints by number of workers\n');
  printTable(['workers', 'what', 'save s', 'MB/s'], largeRows);
}
if (smallRows.length > 0) {
  console.log('\n20 KB verbatim checkpoints\n');
  printTable(
    ['path', 'workers', 'callers', 'p50 ms', 'p99 ms', 'per second', 'api CPU s/1000', 'worker CPU s/1000', 'retries'],
    smallRows,
  );
}

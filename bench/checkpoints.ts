import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type Cluster, startCluster } from '../e2e/support/cluster.ts';
import type { ClusterProcess } from '../e2e/support/cluster-process.ts';
import { cpuSecondsOf, loopDelayOf, median, memoryOf, percentile, printTable } from './support/figures.ts';
import { deploymentOf, RawClient, type Update } from './support/raw-client.ts';

/**
 * Checkpoints through the clustered shape: large ones (memory and event-loop delay of each role), small ones at growing
 * numbers of callers (direct and queued), and the workers' share.
 * Usage: node bench/checkpoints.ts [--large-mb 100] [--at-once 1,4] [--callers 1,16,64] [--seconds 5] [--workers 2]
 */
const { values } = parseArgs({
  options: {
    'large-mb': { type: 'string', default: '100' },
    'at-once': { type: 'string', default: '1,4' },
    callers: { type: 'string', default: '1,16,64' },
    seconds: { type: 'string', default: '5' },
    workers: { type: 'string', default: '2' },
    'direct-bytes': { type: 'string' },
  },
});

async function openUpdate(
  client: RawClient,
  cluster: Cluster,
  name: string,
): Promise<{ stack: string; update: Update }> {
  const stack = await client.createStack(cluster.organization, 'bench', name);
  return { stack, update: await client.startUpdate(stack) };
}

async function large(cluster: Cluster, megabytes: number, atOnce: number): Promise<void> {
  const client = new RawClient(cluster.url, cluster.token);
  const document = deploymentOf(megabytes * 1e6);
  const digest = createHash('sha256').update(document).digest('hex');
  const targets = await Promise.all(
    Array.from({ length: atOnce }, (_, at) => openUpdate(client, cluster, `large-${atOnce}-${at}-${Date.now()}`)),
  );
  for (const url of cluster.apiUrls) await loopDelayOf(url);
  const began = performance.now();
  await Promise.all(targets.map(({ update }) => client.verbatim(update, document, 1)));
  const seconds = (performance.now() - began) / 1000;
  const delays = await Promise.all(cluster.apiUrls.map(loopDelayOf));
  for (const { stack } of targets) {
    const exported = createHash('sha256')
      .update(await client.export(stack))
      .digest('hex');
    if (exported !== digest) throw new Error('the export differs from what was sent');
  }
  const memory = async (parts: readonly ClusterProcess[]): Promise<number> =>
    Math.max(...(await Promise.all(parts.map(async (part) => (await memoryOf(part.pid)).peak))));
  console.log(`\n${atOnce} × ${megabytes} MB verbatim, client's gzip included (retries: ${client.retries})`);
  printTable(
    ['seconds', 'MB/s', 'api peak RSS MB', 'worker peak RSS MB', 'api loop p99 ms', 'api loop max ms'],
    [
      [
        seconds,
        (atOnce * megabytes) / seconds,
        await memory(cluster.apis),
        await memory(cluster.workers),
        Math.max(...delays.map(({ p99 }) => p99)),
        Math.max(...delays.map(({ max }) => max)),
      ],
    ],
  );
}

async function small(cluster: Cluster, callers: number, seconds: number, label: string): Promise<(string | number)[]> {
  const client = new RawClient(cluster.url, cluster.token);
  const document = deploymentOf(20_000);
  const targets = await Promise.all(
    Array.from({ length: callers }, (_, at) =>
      openUpdate(client, cluster, `small-${label}-${callers}-${at}-${Date.now()}`),
    ),
  );
  const latencies: number[] = [];
  const roles = { api: cluster.apis, worker: cluster.workers };
  const before = await Promise.all(
    Object.values(roles).map(async (parts) =>
      (await Promise.all(parts.map(({ pid }) => cpuSecondsOf(pid)))).reduce((sum, value) => sum + value, 0),
    ),
  );
  const end = performance.now() + seconds * 1000;
  const began = performance.now();
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
  const after = await Promise.all(
    Object.values(roles).map(async (parts) =>
      (await Promise.all(parts.map(({ pid }) => cpuSecondsOf(pid)))).reduce((sum, value) => sum + value, 0),
    ),
  );
  const perThousand = after.map((value, at) => ((value - (before[at] as number)) / latencies.length) * 1000);
  await Promise.all(targets.map(({ update }) => client.complete(update)));
  return [
    label,
    String(callers),
    median(latencies),
    percentile(latencies, 0.99),
    latencies.length / elapsed,
    perThousand[0] as number,
    perThousand[1] as number,
    String(client.retries),
  ];
}

async function withCluster(settings: Record<string, string>, work: (cluster: Cluster) => Promise<void>): Promise<void> {
  await using cluster = await startCluster({
    workers: Number(values.workers),
    settings: { HOLDFAST_LOG_LEVEL: 'warn', ...settings },
  });
  await work(cluster);
}

const smallRows: (string | number)[][] = [];
const callers = values.callers.split(',').filter(Boolean).map(Number);
await withCluster({}, async (cluster) => {
  for (const atOnce of values['at-once'].split(',').filter(Boolean).map(Number))
    await large(cluster, Number(values['large-mb']), atOnce);
  for (const count of callers) smallRows.push(await small(cluster, count, Number(values.seconds), 'direct'));
});
if (callers.length > 0) {
  await withCluster({ HOLDFAST_DIRECT_BYTES: '1' }, async (cluster) => {
    for (const count of callers) smallRows.push(await small(cluster, count, Number(values.seconds), 'queued'));
  });
  console.log(`\n20 KB verbatim checkpoints, ${values.workers} workers`);
  printTable(
    ['path', 'callers', 'p50 ms', 'p99 ms', 'per second', 'api CPU s/1000', 'worker CPU s/1000', 'retries'],
    smallRows,
  );
}

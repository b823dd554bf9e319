import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { type Cluster, startCluster } from '../testkit/cluster.ts';
import type { ClusterProcess } from '../testkit/cluster-process.ts';
import { download } from './support/download.ts';
import { cpuSecondsOf, loadAverage, loopDelayOf, median, memoryOf, printTable, resetPeak } from './support/measures.ts';
import { deploymentOf, RawClient, verbatimBody } from './support/raw-client.ts';
import { releasesOf, thisRelease } from './support/releases.ts';
import { stateOf } from './support/state-document.ts';

/**
 * One large document through one API and one worker.
 * It is saved as a verbatim checkpoint whose body is compressed beforehand, changed by a delta, exported as it is and as
 * gzip. Seconds, CPU seconds of API and worker with all their threads, and their peak memory. Several releases alternate.
 * Usage: npm run bench pipeline -- [--mb 100] [--rounds 5] [--documents dense,state] [--steps save,delta,export,gzip]
 *   [--entries name=path/to/bin/holdfast.js,…]
 */
const { values } = parseArgs({
  options: {
    mb: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
    documents: { type: 'string', default: 'dense,state' },
    steps: { type: 'string', default: 'save,delta,export,gzip' },
    entries: { type: 'string', default: thisRelease },
  },
});

interface Statistics {
  readonly seconds: number;
  readonly apiCpu: number;
  readonly workerCpu: number;
  readonly apiPeak: number;
  readonly workerPeak: number;
  /** The longest turn of the event loops, in ms. */
  readonly delay: number;
}

interface Input {
  readonly document: Buffer;
  readonly digest: string;
  readonly gzipped: Buffer;
  readonly delta: { readonly edits: object[]; readonly digest: string };
}

/** A document, its compressed body, and a delta that changes a few places all over it. */
function inputOf(document: Buffer): Input {
  const edits: object[] = [];
  const changed = Buffer.from(document);
  const marker = Buffer.from('"custom":true');
  for (let part = 0; part < 20; part++) {
    const at = document.indexOf(marker, Math.floor((document.length / 20) * part));
    const start = at + marker.length - 4;
    edits.push({ Span: { start: { offset: start }, end: { offset: start + 4 } }, NewText: 'null' });
    changed.write('null', start);
  }
  return {
    document,
    digest: digestOf(document),
    gzipped: gzipSync(verbatimBody(document, 1), { level: 6 }),
    delta: { edits, digest: digestOf(changed) },
  };
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Returns the seconds of `work` and what it cost API and worker. */
async function measured(cluster: Cluster, work: () => Promise<void>): Promise<Statistics> {
  const api = cluster.apis[0] as ClusterProcess;
  const worker = cluster.workers[0] as ClusterProcess;
  const urls = [...cluster.apiManagementUrls, ...cluster.workerUrls];
  await Promise.all([api, worker].map(({ pid }) => resetPeak(pid)));
  await Promise.all(urls.map(loopDelayOf));
  const [apiBefore, workerBefore] = [await cpuSecondsOf(api.pid), await cpuSecondsOf(worker.pid)];
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1000;
  const delays = await Promise.all(urls.map(loopDelayOf));
  return {
    seconds,
    apiCpu: (await cpuSecondsOf(api.pid)) - apiBefore,
    workerCpu: (await cpuSecondsOf(worker.pid)) - workerBefore,
    apiPeak: (await memoryOf(api.pid)).peak,
    workerPeak: (await memoryOf(worker.pid)).peak,
    delay: Math.max(...delays.map(({ max }) => max)),
  };
}

/** A state is indexed 2 to 3 s after it is saved. */
const restMs = 4_000;
const maxRestCpuSeconds = 0.5;

/** Waits until API and worker have nothing left to do for what was saved before. */
async function untilAtRest({ apis, workers }: Cluster): Promise<void> {
  const cpuSeconds = async (): Promise<number> =>
    (await Promise.all([...apis, ...workers].map(({ pid }) => cpuSecondsOf(pid)))).reduce((sum, each) => sum + each);
  let before = await cpuSeconds();
  for (;;) {
    await sleep(restMs);
    const after = await cpuSeconds();
    if (after - before <= maxRestCpuSeconds) return;
    before = after;
  }
}

const steps = values.steps.split(',');

/** One round: each step once. */
async function round(
  cluster: Cluster,
  { gzipped, digest, delta }: Input,
  name: string,
): Promise<Map<string, Statistics>> {
  const client = new RawClient(cluster.apiUrls[0] as string, cluster.token);
  const stack = await client.createStack(cluster.organization, 'bench', name);
  const update = await client.startUpdate(stack);
  const counts = new Map<string, Statistics>();
  const step = async (label: string, work: () => Promise<void>): Promise<void> => {
    if (!steps.includes(label)) return;
    await untilAtRest(cluster);
    counts.set(label, await measured(cluster, work));
  };
  const save = async (): Promise<void> => {
    await client.verbatimGzipped(update, gzipped);
  };
  if (steps.includes('save')) await step('save', save);
  else await save();
  const exported = async (encoding: string, expected: string | null): Promise<void> => {
    const { digest: actual } = await download(`${cluster.apiUrls[0]}${stack}/export`, cluster.token, encoding);
    if (expected !== null && actual !== expected) throw new Error('the export differs from what was sent');
  };
  await step('export', () => exported('identity', digest));
  await step('gzip', () => exported('gzip', null));
  await step('delta', async () => {
    const body = { version: 3, checkpointHash: delta.digest, sequenceNumber: 2, deploymentDelta: delta.edits };
    await client.call('PATCH', `${update.path}/checkpointdelta`, body, { auth: update.lease, gzip: true });
  });
  if (steps.includes('delta')) await exported('identity', delta.digest);
  if (client.retries > 0) throw new Error(`${client.retries} calls had to be repeated`);
  await client.complete(update);
  return counts;
}

await using resources = new AsyncDisposableStack();
const clusters = new Map<string, Cluster>();
for (const { name, program: entry } of releasesOf(values.entries)) {
  const settings = { HOLDFAST_LOG_LEVEL: 'warn' };
  clusters.set(name, resources.use(await startCluster({ apis: 1, workers: 1, entry, settings })));
}
const bytes = Number(values.mb) * 1e6;
const makers = { dense: deploymentOf, state: stateOf };
console.log(`load ${await loadAverage()}`);
for (const kind of values.documents.split(',') as (keyof typeof makers)[]) {
  const input = inputOf(makers[kind](bytes));
  // Connections that were closed meanwhile are noticed before they are used again.
  await sleep(1_000);
  const megabytes = input.document.length / 1e6;
  const results = new Map<string, Statistics[]>();
  // The first round warms up and does not count.
  for (let at = 0; at <= Number(values.rounds); at++) {
    for (const [name, cluster] of clusters) {
      const counts = await round(cluster, input, `${kind}-${at}-${Date.now()}`);
      if (at === 0) continue;
      for (const [label, each] of counts) {
        const key = `${label}|${name}`;
        results.set(key, [...(results.get(key) ?? []), each]);
      }
    }
  }
  console.log(`\n${kind}: ${megabytes.toFixed(0)} MB, ${(input.gzipped.length / 1e6).toFixed(1)} MB as sent\n`);
  printTable(
    [
      'step',
      'release',
      's',
      'MB/s',
      'API CPU s',
      'worker CPU s',
      'CPU s per 100 MB',
      'API MB',
      'worker MB',
      'delay ms',
    ],
    [...results]
      .toSorted(([a], [b]) => steps.indexOf(a.split('|')[0] as string) - steps.indexOf(b.split('|')[0] as string))
      .map(([key, all]) => {
        const of = (pick: (counts: Statistics) => number): number => median(all.map(pick));
        const seconds = of((each) => each.seconds);
        const cpu = of((each) => each.apiCpu + each.workerCpu);
        return [
          ...key.split('|'),
          seconds,
          megabytes / seconds,
          of((each) => each.apiCpu),
          of((each) => each.workerCpu),
          (cpu / megabytes) * 100,
          Math.max(...all.map((each) => each.apiPeak)),
          Math.max(...all.map((each) => each.workerPeak)),
          of((each) => each.delay),
        ];
      }),
  );
}
console.log(`\nload ${await loadAverage()}`);

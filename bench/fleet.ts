import { parseArgs } from 'node:util';
import { type Cluster, startCluster } from '../testkit/cluster.ts';
import { tuned } from '../testkit/tuned.ts';
import { processKinds } from './support/cluster-usage.ts';
import { CoreLimits } from './support/core-limits.ts';
import { type Replayed, replayDay } from './support/fleet-replay.ts';
import { type Load, type Throughput, throughputOf } from './support/fleet-throughput.ts';
import { loadAverage, printTable } from './support/measures.ts';

/**
 * A busy fleet: a day of 300 stacks, and throughput by the number of processes.
 * Against clusters of separate processes. `day` replays a day at 60 times its speed, or the hours around noon: updates, two
 * fifths of which begin at the full hour, previews, cancelled updates, runners that are killed, pages that stay open, and
 * exports. Prints the time of each kind of call, memory and disk at each quarter, errors, and which stacks do not have the
 * state that was acknowledged last. Exits with 1 if there are any. `replicas` and `workers` measure clusters of growing
 * size, with the cores that each kind of process uses. With --api-cores and --worker-cores, control groups limit each
 * process (Linux, root), so that a small machine shows what several would do.
 * Usage: npm run bench fleet -- [--parts day,replicas,workers] [--minutes 24] [--stacks 300] [--updates 8] [--seed 1]
 *   [--apis 3] [--workers 2] [--counts-of-apis 1,2,3] [--counts-of-workers 1,2,4] [--pipelines 50] [--seconds 20]
 *   [--api-cores 0.25] [--worker-cores 0.25]
 */
const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'day,replicas,workers' },
    minutes: { type: 'string', default: '24' },
    stacks: { type: 'string', default: '300' },
    updates: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
    apis: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    'counts-of-apis': { type: 'string', default: '1,2,3' },
    'counts-of-workers': { type: 'string', default: '1,2,4' },
    pipelines: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '20' },
    'api-cores': { type: 'string' },
    'worker-cores': { type: 'string' },
  },
});
const parts = values.parts.split(',');
const speed = 60;
const [apis, workers] = [Number(values.apis), Number(values.workers)];
const onCrash = ({ log, name }: { name: string; log: string }): void =>
  console.error(`${name} has ended:\n${log.slice(-2_000)}`);
const settings = {
  HOLDFAST_LOG_LEVEL: 'warn',
  // One token stands for that of each team.
  HOLDFAST_REQUESTS_PER_MINUTE: '0',
};

if (parts.includes('day')) await measureDay();
if (parts.includes('replicas'))
  await measureAll(values['counts-of-apis'], 'small journal batches', (count) => ({ apis: count, workers }));
if (parts.includes('workers'))
  await measureAll(values['counts-of-workers'], 'bodies of 2 MB', (count) => ({ apis, workers: count }));

async function measureDay(): Promise<void> {
  // Times of the background are as much shorter as the day, as far as the machine can keep up.
  const times = { leaseSeconds: 15, sweepSeconds: 2, eventArchiveDelaySeconds: 2, journalGraceSeconds: 60 };
  await using cluster = await startCluster({
    ...{ apis, workers, onCrash },
    settings: { ...settings, ...tuned(times), HOLDFAST_BLOB_RETENTION_SECONDS: '60' },
  });
  const replayed = await replayDay(cluster, {
    ...{ stacks: Number(values.stacks), updatesPerStack: Number(values.updates), speed },
    ...{ minutes: Number(values.minutes), seed: Number(values.seed) },
  });
  const { begun, calls, latestMs, loopMaxMs } = replayed;
  console.log(
    `\nA day of ${values.stacks} stacks, ${values.minutes} minutes, ${apis} API replicas, ${workers} workers; load ${await loadAverage()}\n`,
  );
  printTable(['call', 'calls', 'p50 ms', 'p99 ms', 'longest ms', 'above 1 s'], calls.rows());
  console.log();
  printQuarters(replayed);
  console.log(
    `\nPipelines: ${begun.completed} completed, ${begun.cancelled} cancelled, ${begun.killed} killed, ${begun.preview} previews. ` +
      `The generator's event loop took up to ${loopMaxMs.toFixed(0)} ms a turn; the latest pipeline began ${latestMs.toFixed(0)} ms late.`,
  );
  printOutcome(replayed);
}

function printQuarters({ points }: Replayed): void {
  const head = ['', 'calls', 'API MB', 'worker MB', 'Redis MB', 'tables MB', 'WAL MB', 'blobs MB'];
  printTable(
    [...head, ...processKinds.map((kind) => `cores: ${kind}`)],
    points.map(({ api, blobs, calls, cores, database, label, redis, worker, writeAheadLog }) => [
      ...[label, String(calls), api, worker, redis, database, writeAheadLog, blobs],
      ...processKinds.map((kind) => cores?.[kind] ?? Number.NaN),
    ]),
  );
}

function printOutcome({ calls, failures, faults, leftOver, lost }: Replayed): void {
  const { active, journals, stopped } = leftOver;
  const list = (name: string, counts: ReadonlyMap<string, number>): string =>
    [`${name}: ${counts.size === 0 ? 0 : ''}`, ...[...counts].map(([what, times]) => `  ${times} × ${what}`)].join(
      '\n',
    );
  console.log(list('Expected refusals', calls.refusals));
  console.log(list('Errors', calls.errors));
  for (const failure of failures) console.log(`Failed: ${failure.slice(0, 500)}`);
  for (const fault of faults) console.log(`Logged: ${fault}`);
  for (const stack of lost) console.log(`Lost: ${stack}`);
  console.log(`Left over: ${active} active updates, ${journals} journals; ${stopped} journals with a fault.`);
  console.log(`${lost.length} lost`);
  const wrong = [lost.length, failures.length, faults.length, calls.errors.size, active, journals, stopped];
  if (wrong.some((count) => count > 0)) process.exitCode = 1;
}

/** Measures a cluster of each size. */
async function measureAll(
  counts: string,
  load: Load,
  sizeOf: (count: number) => { apis: number; workers: number },
): Promise<void> {
  const measured: { count: number; result: Throughput }[] = [];
  for (const count of counts.split(',').map(Number)) {
    using limits = new CoreLimits();
    await using cluster = await startCluster({ ...sizeOf(count), onCrash, settings });
    limitCores(limits, cluster);
    const pipelines = load === 'bodies of 2 MB' ? Math.min(Number(values.pipelines), 16) : Number(values.pipelines);
    const times = { seconds: Number(values.seconds), warmUpSeconds: Math.ceil(Number(values.seconds) / 2) };
    measured.push({ count, result: await throughputOf(cluster, load, { label: 'busy', pipelines, ...times }) });
  }
  console.log(
    `\n${load}, ${values['api-cores'] ?? 'all'} cores per API replica, ${values['worker-cores'] ?? 'all'} per worker; load ${await loadAverage()}\n`,
  );
  printTable(
    [
      ...['API replicas, workers', 'saves/s', 'p50 ms', 'p99 ms', 'GET /api/user p50 ms', 'p99 ms', 'cores'],
      ...processKinds.map((kind) => `cores: ${kind}`),
    ],
    measured.map(({ count, result }) => [
      `${sizeOf(count).apis}, ${sizeOf(count).workers}`,
      ...[result.perSecond, result.p50, result.p99, result.smallP50, result.smallP99],
      processKinds.reduce((sum, kind) => sum + (result.cores[kind] || 0), 0),
      ...processKinds.map((kind) => result.cores[kind]),
    ]),
  );
  for (const { count, result } of measured) for (const error of result.errors) console.log(`${count}: ${error}`);
  if (measured.some(({ result }) => result.errors.length > 0)) process.exitCode = 1;
}

function limitCores(limits: CoreLimits, cluster: Cluster): void {
  if (values['api-cores']) limits.limit(cluster.apis, Number(values['api-cores']));
  if (values['worker-cores']) limits.limit(cluster.workers, Number(values['worker-cores']));
}

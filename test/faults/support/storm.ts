import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, startCluster } from '../../../testkit/cluster.ts';
import { holdfastProgram } from '../../../testkit/holdfast-program.ts';
import { ToolUnavailableError } from '../../../testkit/toolchain/command.ts';
import { tuned } from '../../../testkit/tuned.ts';
import { SmallDisk } from '../../support/small-disk.ts';
import { query } from './audit.ts';
import { Chaos, randomOf } from './chaos.ts';
import { CliPipeline } from './cli-pipeline.ts';
import { type Clock, ClockShop } from './clocks.ts';
import { GuardedPipeline } from './guarded-pipeline.ts';
import { type Pipeline, pipelineMix, type Target } from './pipelines.ts';
import { QueuedPipeline, QueuedStack } from './queued-pipelines.ts';
import { S3Gate } from './s3-gate.ts';
import { openWayToPostgres, type WayToPostgres } from './way-to-postgres.ts';

/** A cluster under load, in which each process has its own path to S3. */
export interface Storm extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly chaos: Chaos;
  readonly load: Load;
  /** null where it cannot be set. */
  readonly postgresClock: Clock | null;
  /** The disk of the S3 server; null where none can be mounted. */
  readonly disk: SmallDisk | null;
  /** Programs of parts, by name, that use another release at their next start. */
  readonly programs: Map<string, string>;
  readonly pipelines: readonly Pipeline[];
  /** Updated by several of the pipelines, one after another. */
  readonly queuedStack: QueuedStack;
  /** Empty where the CLI is not available. */
  readonly cliPipelines: readonly CliPipeline[];
  readonly apiGates: readonly S3Gate[];
  readonly workerGates: readonly S3Gate[];
  /** Parts that ended unexpectedly. */
  readonly crashes: string[];
}

/** How busy the pipelines are. */
export interface Load {
  /** How many times as long as in the storm they pause. */
  pauses: number;
}

/** Leaves processor time to processes that start, and to calls that a test waits for. */
export const calm = 8;

/**
 * Body sizes from which on the workers are used: with the first replica for nearly all bodies, with the last only for
 * large ones.
 */
const directBytes = ['256', '16384', '262144'];

/** Background work that occurs during the test. */
const frequentTasks = { sweepSeconds: 2, eventArchiveDelaySeconds: 4 };

/** Short, so that what a fault has silenced is noticed during the test. A busy machine exceeds them, too: calls are repeated then. */
const shortLimits = { statementTimeoutMs: 10_000, databaseConnectMs: 3_500, s3TimeoutMs: 10_000 };

/** For processes of which no call may fail: longer than a busy machine takes. */
export const longLimits = {
  ...{ statementTimeoutMs: 60_000, databaseConnectMs: 60_000, databaseAcquireMs: 60_000 },
  s3TimeoutMs: 120_000,
};
export const withLongLimits = tuned({ ...frequentTasks, ...longLimits });

/** Pipelines that wait for the same stack. */
const queuedPipelines = 4;

const diskBytes = 4 * 1024 ** 3;

/** How long the pipelines of a failed run may take to end. */
const abandonMs = 15_000;

export async function startStorm(seed: number): Promise<Storm> {
  const gates = await Promise.all(Array.from({ length: 5 }, () => S3Gate.open()));
  const apiGates = gates.slice(0, 3);
  const workerGates = gates.slice(3);
  const through = (gate: S3Gate | undefined, endpoint: string): Record<string, string> => {
    gate?.leadTo(endpoint);
    return gate ? { HOLDFAST_S3_ENDPOINT: gate.url } : {};
  };
  const crashes: string[] = [];
  const clocks = await ClockShop.open();
  const apiClocks = apiGates.map(() => clocks.ofNode());
  const workerClocks = workerGates.map(() => clocks.ofNode());
  const postgresClock = clocks.ofProgram();
  const disk = SmallDisk.mount(diskBytes);
  const programs = new Map<string, string>();
  let way: WayToPostgres | undefined;
  const cluster = await startCluster({
    prepared: true,
    apis: apiGates.length,
    spareApis: 3,
    workers: workerGates.length,
    settings: {
      HOLDFAST_INLINE_BYTES: '4096',
      ...tuned({ ...frequentTasks, ...shortLimits }),
      HOLDFAST_BLOB_RETENTION_SECONDS: '60',
      // Longer than a busy proxy takes to ask whether a replica is ready.
      HOLDFAST_DRAIN_SECONDS: '10',
      HOLDFAST_LONG_POLL_SECONDS: '10',
      HOLDFAST_BACKGROUND_BYTES_PER_SECOND: '25000000',
    },
    databaseThrough: async (url) => {
      way = await openWayToPostgres(url);
      return way.url;
    },
    ...(postgresClock ? { postgresEnv: postgresClock.env } : {}),
    ...(disk ? { s3DataDir: disk.directory } : {}),
    program: (name) => programs.get(name) ?? holdfastProgram,
    apiSettings: (index, endpoint) => ({
      HOLDFAST_DIRECT_BYTES: directBytes[index] ?? '262144',
      ...through(apiGates[index], endpoint),
      ...apiClocks[index]?.env,
    }),
    workerSettings: (index, endpoint) => ({ ...through(workerGates[index], endpoint), ...workerClocks[index]?.env }),
    onCrash: (part) => crashes.push(`${part.name}:\n${part.log.slice(-2_000)}`),
  });
  const wayToPostgres = way as unknown as WayToPostgres;
  // At once, not after minutes, so that versions are encoded during the storm.
  await query(cluster, 'alter table checkpoints alter column encode_at set default now()');
  const fragile = { gates, wayToPostgres, apiClocks, workerClocks, postgresClock, disk };
  const chaos = new Chaos(cluster, fragile, randomOf(seed));
  const { url, token, reviewerToken, organization } = cluster;
  const load: Load = { pauses: calm };
  const target: Target = {
    ...{ url, token, reviewerToken, organization },
    clockSetAt: () => chaos.clockSetAt,
    pauses: () => load.pauses,
  };
  const queuedStack = new QueuedStack('queued');
  const queued = Array.from(
    { length: queuedPipelines },
    (_, at) => new QueuedPipeline(target, `queued-${at}`, queuedStack),
  );
  const guarded = ['guarded-0', 'guarded-1'].map((name) => new GuardedPipeline(target, name));
  const pipelines = [...pipelineMix(target), ...queued, ...guarded];
  const cliPipelines: CliPipeline[] = [];
  const dispose = async (): Promise<void> => {
    // After a failure all of them still run, and parts may be under repair.
    await Promise.allSettled([
      chaos.settle(),
      queuedStack.stopWatching(),
      ...cliPipelines.map((cli) => cli[Symbol.asyncDispose]()),
      Promise.race([
        Promise.all(pipelines.map((pipeline) => pipeline.abandon())),
        sleep(abandonMs, undefined, { ref: false }),
      ]),
    ]);
    await writeLogs(cluster);
    await cluster.stop();
    await Promise.all(gates.map((gate) => gate[Symbol.asyncDispose]()));
    await wayToPostgres[Symbol.asyncDispose]();
    disk?.[Symbol.dispose]();
    await clocks[Symbol.asyncDispose]();
  };
  try {
    await Promise.all(pipelines.map((pipeline) => pipeline.start()));
    queuedStack.watch(async (stack) => {
      const rows = await query<{ first: string }>(
        cluster,
        `select first_lock_waiter(id) as first from stacks
         where name = $1 and active_update_id is null and first_lock_waiter(id) is not null`,
        [stack],
      );
      return rows[0]?.first ?? null;
    });
    await startCli(target, cliPipelines);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    cluster,
    chaos,
    load,
    postgresClock,
    disk,
    programs,
    pipelines,
    queuedStack,
    cliPipelines,
    apiGates,
    workerGates,
    crashes,
    [Symbol.asyncDispose]: dispose,
  };
}

/** For debugging: HOLDFAST_TEST_FAULT_LOGS names a folder. */
async function writeLogs({ parts }: Cluster): Promise<void> {
  const folder = process.env['HOLDFAST_TEST_FAULT_LOGS'];
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await Promise.all(parts.map(({ name, log }) => writeFile(path.join(folder, `${name}.log`), log)));
}

/** One that sends journals, and one that sends whole documents. */
async function startCli(target: Target, started: CliPipeline[]): Promise<void> {
  const kinds = { journal: {}, documents: { PULUMI_DISABLE_JOURNALING: 'true' } };
  try {
    for (const [name, env] of Object.entries(kinds)) started.push(await CliPipeline.start(target, name, env));
  } catch (error) {
    if (!(error instanceof ToolUnavailableError)) throw error;
    process.stderr.write(`faults: without the real CLI: ${error.message}\n`);
  }
}

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../testkit/cluster.ts';
import { until } from '../../testkit/until.ts';
import { type CpuSeconds, coresBetween, cpuOf, type Kept, keptBy, queryCluster } from './cluster-usage.ts';
import { type DayOptions, type Fate, randomFrom, runsOf } from './fleet-day.ts';
import { FleetStack } from './fleet-stack.ts';
import type { Form } from './pipeline-bodies.ts';
import { TimedCalls } from './timed-calls.ts';

/** Pages of the web UI that stay open and load again every 30 s of the day. */
const openPages = 10;
const pageEverySeconds = 30;
/** A tool that exports each stack once an hour of the day. */
const exportsPerHour = 1;
const quarters = 4;
const atOnce = 16;

/** The cluster at a quarter of the day, and the cores that each kind of process has used since the one before. */
export interface QuarterPoint extends Kept {
  readonly label: string;
  readonly cores: CpuSeconds | null;
  readonly calls: number;
}

export interface Replayed {
  readonly calls: TimedCalls;
  readonly points: readonly QuarterPoint[];
  readonly begun: Readonly<Record<Fate | 'preview', number>>;
  /** Why pipelines and readers failed. */
  readonly failures: readonly string[];
  /** Stacks that do not have their last acknowledged state. */
  readonly lost: readonly string[];
  /** Updates that hold their stack at the end, journals that are not compacted or cannot be. */
  readonly leftOver: { readonly active: number; readonly journals: number; readonly stopped: number };
  /** Lines of level error and fatal of all processes, their beginnings. */
  readonly faults: readonly string[];
  /** The longest turn of the event loop of this process, which adds to the times of its calls, in ms. */
  readonly loopMaxMs: number;
  /** How late the latest pipeline began, in ms. */
  readonly latestMs: number;
}

/** Form and size of the state of a stack: most are small, and some CLIs send no journals. */
function shapeOf(index: number): { form: Form; bytes: number } {
  const form = index % 10 < 7 ? 'journal' : index % 10 < 9 ? 'delta' : 'whole';
  if (index % 20 === 19) return { form: 'journal', bytes: 1_000_000 };
  return { form, bytes: index % 4 === 3 ? 100_000 : 20_000 };
}

/** Compares all states with what was acknowledged. */
export async function replayDay(cluster: Cluster, options: DayOptions): Promise<Replayed> {
  const setUp = new TimedCalls(cluster.url, cluster.token);
  const calls = new TimedCalls(cluster.url, cluster.token);
  const stacks = Array.from({ length: options.stacks }, (_, index) => {
    const { bytes, form } = shapeOf(index);
    const names = { organization: cluster.organization, project: `fleet-${index % 20}`, name: `s${index}` };
    return new FleetStack(calls, names, form, bytes);
  });
  await each(stacks, (stack) => stack.create(setUp));

  const runs = runsOf(options);
  const failures: string[] = [];
  const begun = { completed: 0, cancelled: 0, killed: 0, preview: 0 };
  const points: QuarterPoint[] = [];
  const lengthMs = options.minutes * 60_000;
  const loop = monitorEventLoopDelay({ resolution: 5 });
  loop.enable();
  const began = performance.now();
  const ends = new AbortController();
  const guarded = (work: Promise<void>): Promise<void> =>
    work.catch((error: Error) => void failures.push(error.message));
  const readers = [
    ...Array.from({ length: openPages }, (_, index) => watchPages(index, stacks, calls, options, ends.signal)),
    exportAll(stacks, calls, options, ends.signal),
  ].map(guarded);
  const measuring = measureQuarters(cluster, calls, { began, lengthMs }, points);
  const running: Promise<void>[] = [];
  let latestMs = 0;
  for (const run of runs) {
    const leftMs = began + run.atMs - performance.now();
    if (leftMs > 0) await sleep(leftMs);
    latestMs = Math.max(latestMs, performance.now() - began - run.atMs);
    begun[run.kind === 'preview' ? 'preview' : run.fate]++;
    running.push(guarded((stacks[run.stack] as FleetStack).run(run)));
  }
  await Promise.all(running);
  await measuring;
  ends.abort();
  await Promise.all(readers);
  loop.disable();

  const leftOver = await untilSettled(cluster);
  points.push({ label: 'settled', cores: null, calls: calls.count, ...(await keptBy(cluster)) });
  const lost: string[] = [];
  await each(stacks, async (stack) => {
    if ((await stack.verify(setUp)) === 'lost') lost.push(stack.path);
  });
  setUp.close();
  calls.close();
  return {
    calls,
    points,
    begun,
    failures,
    lost,
    leftOver,
    faults: faultsOf(cluster),
    loopMaxMs: loop.max / 1e6,
    latestMs,
  };
}

/** Runs `work` for all, several at once. */
async function each<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of left) await work(one);
    }),
  );
}

/** What the overview and the page of a stack load. */
async function watchPages(
  index: number,
  stacks: readonly FleetStack[],
  calls: TimedCalls,
  { seed, speed }: DayOptions,
  ends: AbortSignal,
): Promise<void> {
  const random = randomFrom(seed + index + 1);
  const load = (name: string, input: object): Promise<unknown> => {
    const path = `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}`;
    return calls.send({ kind: `page ${name}`, method: 'GET', path });
  };
  while (!ends.aborted) {
    const { organization, ...names } = (stacks[Math.floor(random() * stacks.length)] as FleetStack).names;
    const stack = { organization, ...names };
    await Promise.all([load('stacks.list', { organization, limit: 50 }), load('stacks.attention', { organization })]);
    await Promise.all([load('stacks.get', stack), load('updates.list', { ...stack, limit: 20 })]);
    await pause((pageEverySeconds * 1000) / speed, ends);
  }
}

async function exportAll(
  stacks: readonly FleetStack[],
  calls: TimedCalls,
  { speed }: DayOptions,
  ends: AbortSignal,
): Promise<void> {
  const everyMs = 3_600_000 / exportsPerHour / speed / stacks.length;
  for (let at = 0; !ends.aborted; at++) {
    const { path } = stacks[at % stacks.length] as FleetStack;
    await calls.send({ kind: 'export', method: 'GET', path: `${path}/export` });
    await pause(everyMs, ends);
  }
}

async function measureQuarters(
  cluster: Cluster,
  calls: TimedCalls,
  { began, lengthMs }: { readonly began: number; readonly lengthMs: number },
  points: QuarterPoint[],
): Promise<void> {
  let [cpu, at] = [await cpuOf(cluster), performance.now()];
  points.push({ label: '0', cores: null, calls: 0, ...(await keptBy(cluster)) });
  for (let quarter = 1; quarter <= quarters; quarter++) {
    const leftMs = began + (lengthMs * quarter) / quarters - performance.now();
    if (leftMs > 0) await sleep(leftMs);
    const [now, nowAt] = [await cpuOf(cluster), performance.now()];
    const cores = coresBetween(cpu, now, (nowAt - at) / 1000);
    points.push({ label: `${quarter}/${quarters}`, cores, calls: calls.count, ...(await keptBy(cluster)) });
    [cpu, at] = [now, nowAt];
  }
}

/** Returns what is left if no update holding a stack and no waiting journal takes too long. */
async function untilSettled(cluster: Cluster): Promise<Replayed['leftOver']> {
  let left = { active: 0, journals: 0, stopped: 0 };
  const isSettled = async (): Promise<boolean> => {
    const [row] = await queryCluster<typeof left>(
      cluster,
      `select (select count(*)::int from updates where status in ('not started', 'running')) as active,
         (select count(*)::int from journals where compacted_at is null and entry_count > compacted_entries and compaction_error is null) as journals,
         (select count(*)::int from journals where compaction_error is not null) as stopped`,
    );
    left = row ?? left;
    return left.active === 0 && left.journals === 0;
  };
  await until(isSettled, 'the cluster has settled', { timeoutMs: 300_000, everyMs: 1_000 }).catch(() => null);
  return left;
}

function faultsOf(cluster: Cluster): string[] {
  return [...cluster.apis, ...cluster.workers].flatMap(({ log, name }) =>
    log
      .split('\n')
      .flatMap((line) => (/^\{"level":"(error|fatal)"/.test(line) ? [`${name} ${line.slice(0, 400)}`] : [])),
  );
}

/** Does not throw when it is aborted. */
async function pause(ms: number, ends: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: ends }).catch(() => {});
}

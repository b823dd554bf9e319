import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Cluster } from '../../testkit/cluster.ts';
import { type CpuSeconds, coresBetween, cpuOf } from './cluster-usage.ts';
import { percentile } from './measures.ts';
import { documentOf, resourcesOf, stepsFrom } from './pipeline-bodies.ts';
import { deploymentOf, verbatimBody } from './raw-client.ts';
import { TimedCalls } from './timed-calls.ts';

/** Who does the work: small calls are committed by the API itself, large bodies by workers. */
export type Load = 'small journal batches' | 'bodies of 2 MB';

export interface Throughput {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** `GET /api/user`, which nothing but the API answers, meanwhile. */
  readonly smallP50: number;
  readonly smallP99: number;
  readonly cores: CpuSeconds;
  readonly errors: readonly string[];
}

const stateBytes = 64_000;
const stepsPerUpdate = 40;
const largeBytes = 2_000_000;
const probeEveryMs = 20;

/** One update after another, for some time. Counts the calls that save. */
export async function throughputOf(
  cluster: Cluster,
  load: Load,
  {
    label,
    pipelines,
    seconds,
    warmUpSeconds,
  }: Readonly<Record<'pipelines' | 'seconds' | 'warmUpSeconds', number>> & {
    readonly label: string;
  },
): Promise<Throughput> {
  const setUp = new TimedCalls(cluster.url, cluster.token);
  const base = resourcesOf(stateBytes);
  const parent = `/api/stacks/${cluster.organization}/${label}`;
  const stacks = Array.from({ length: pipelines }, (_, at) => `${parent}/s${at}`);
  for (const [at, stack] of stacks.entries()) {
    await setUp.send({ kind: 'create', method: 'POST', path: parent, body: { stackName: `s${at}` } });
    const body = JSON.parse(documentOf(base).toString()) as object;
    if (load === 'small journal batches')
      await setUp.send({ kind: 'import', method: 'POST', path: `${stack}/import`, body });
  }
  const large = load === 'bodies of 2 MB' ? largeBodies() : null;
  const calls = new TimedCalls(cluster.url, cluster.token);
  const probes = new TimedCalls(cluster.url, cluster.token);
  const ends = new AbortController();
  const failures: string[] = [];
  const work = [
    ...stacks.map((stack) => runPipeline(calls, stack, large, base, ends.signal)),
    probe(probes, ends.signal),
  ].map((each) => each.catch((error: Error) => void failures.push(error.message)));
  await sleep(warmUpSeconds * 1000);
  const counted = (): number => calls.times.get('save')?.length ?? 0;
  const [first, firstProbe] = [counted(), probes.count];
  const [cpu, began] = [await cpuOf(cluster), performance.now()];
  await sleep(seconds * 1000);
  const [last, elapsed] = [counted(), (performance.now() - began) / 1000];
  const cores = coresBetween(cpu, await cpuOf(cluster), elapsed);
  ends.abort();
  await Promise.all(work);
  const saves = calls.times.get('save')?.slice(first, last) ?? [];
  const small = probes.times.get('small')?.slice(firstProbe) ?? [];
  for (const each of [setUp, calls, probes]) each.close();
  return {
    perSecond: (last - first) / elapsed,
    p50: percentile(saves, 0.5),
    p99: percentile(saves, 0.99),
    smallP50: percentile(small, 0.5),
    smallP99: percentile(small, 0.99),
    cores,
    errors: [...failures, ...[...calls.errors, ...probes.errors].map(([what, times]) => `${times} × ${what}`)],
  };
}

/** Compressed beforehand: that costs more than sending them. */
function largeBodies(): Buffer[] {
  const document = deploymentOf(largeBytes);
  return Array.from({ length: stepsPerUpdate }, (_, at) => gzipSync(verbatimBody(document, at + 1), { level: 1 }));
}

/** One update after another, the last of them completed, too. */
async function runPipeline(
  calls: TimedCalls,
  stack: string,
  large: readonly Buffer[] | null,
  base: readonly string[],
  ends: AbortSignal,
): Promise<void> {
  let state = base;
  for (let update = 1; !ends.aborted; update++) {
    const created = await calls.send({ kind: 'create', method: 'POST', path: `${stack}/update`, body: {} });
    const path = `${stack}/update/${(JSON.parse(created.text) as { updateID: string }).updateID}`;
    const body = large ? {} : { journalVersion: 1 };
    const { text } = await calls.send({ kind: 'start', method: 'POST', path, body });
    const authorization = `update-token ${(JSON.parse(text) as { token: string }).token}`;
    const save = { kind: 'save', method: 'PATCH', authorization };
    if (large) {
      for (const each of large) {
        if (ends.aborted) break;
        await calls.send({ ...save, path: `${path}/checkpointverbatim`, body: each });
      }
    } else {
      for (const step of stepsFrom('journal', state, { steps: stepsPerUpdate, changes: 4, revision: update * 1_000 })) {
        if (ends.aborted) break;
        await calls.send({ ...save, path: `${path}/${step.call}`, body: step.body });
      }
    }
    const done = { kind: 'complete', method: 'POST', path: `${path}/complete`, body: { status: 'succeeded' } };
    await calls.send({ ...done, authorization });
    if (large || ends.aborted) continue;
    const exported = await calls.send({ kind: 'export', method: 'GET', path: `${stack}/export` });
    const { deployment } = JSON.parse(exported.text) as { deployment: { resources: object[] } };
    state = deployment.resources.map((resource) => JSON.stringify(resource));
  }
}

async function probe(calls: TimedCalls, ends: AbortSignal): Promise<void> {
  while (!ends.aborted) {
    await calls.send({ kind: 'small', method: 'GET', path: '/api/user' });
    await sleep(probeEveryMs, undefined, { signal: ends }).catch(() => {});
  }
}

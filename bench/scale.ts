import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { createDatabase, ownDatabaseSettings } from './support/databases.ts';
import { loadAverage, percentile, printTable } from './support/measures.ts';
import { PlanLog, type RunStatement } from './support/plan-log.ts';
import { listCalls, protocolCalls, type ScaleCall } from './support/scale-calls.ts';
import { type ScaleSizes, seed } from './support/scale-seed.ts';
import { measureDeletion, measureWholeHistory, type ServedDatabase, sweepStatements } from './support/scale-sweeps.ts';

/**
 * An almost empty database against a large one.
 * Both are in one Postgres, with a server for each: latency of each call, alternating, and what its statements read.
 * Usage: npm run bench scale -- [--stacks 100000] [--projects 1000] [--organizations 50] [--updates 1000000]
 *   [--checkpoints 2000000] [--events 0] [--entries 0] [--running 10000] [--deep 10000] [--rounds 30] [--only text]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '100000' },
    projects: { type: 'string', default: '1000' },
    organizations: { type: 'string', default: '50' },
    updates: { type: 'string', default: '1000000' },
    checkpoints: { type: 'string', default: '2000000' },
    events: { type: 'string', default: '0' },
    entries: { type: 'string', default: '0' },
    running: { type: 'string', default: '10000' },
    deep: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '30' },
    only: { type: 'string', default: '' },
  },
});

const sizes = Object.fromEntries(
  Object.entries(values)
    .filter(([name]) => name !== 'only' && name !== 'rounds')
    .map(([name, value]) => [name, Number(value)]),
) as unknown as ScaleSizes;
const rounds = Number(values.rounds);
const smallSizes: ScaleSizes = {
  organizations: 1,
  projects: 1,
  stacks: 10,
  updates: 50,
  checkpoints: 50,
  events: 0,
  entries: 0,
  running: 0,
  deep: 100,
};

const note = (text: string): void => console.error(text);

async function startSide(log: PlanLog, name: string, contents: ScaleSizes): Promise<ServedDatabase> {
  const url = await createDatabase(log.postgres.url, name);
  const common = ownDatabaseSettings(url);
  const serve = (settings: Record<string, string>) => startOwnHoldfast({ ...common, ...settings });
  const server = await serve({});
  await seed(url, contents, 'ada', (text) => note(`${name}: ${text}`));
  return { url, server, serve };
}

async function measure(small: readonly ScaleCall[], large: readonly ScaleCall[], log: PlanLog): Promise<void> {
  const record = new Map<string, { small: number[]; large: number[] }>();
  const statements = new Map<string, { small: RunStatement[]; large: RunStatement[] }>();
  for (let round = 0; round < rounds + 2; round++) {
    for (const [side, calls] of [
      ['small', small],
      ['large', large],
    ] as const) {
      for (const call of calls) {
        const begun = performance.now();
        await call.run();
        const ms = performance.now() - begun;
        // The first rounds fill caches.
        if (round < 2) continue;
        const counts = record.get(call.name) ?? { small: [], large: [] };
        counts[side].push(ms);
        record.set(call.name, counts);
      }
    }
  }
  for (const [side, calls] of [
    ['small', small],
    ['large', large],
  ] as const) {
    for (const call of calls) {
      const found = statements.get(call.name) ?? { small: [], large: [] };
      statements.set(call.name, { ...found, [side]: await log.during(call.run) });
    }
  }
  const rows = [...record].map(([name, counts]) => {
    const run = statements.get(name) ?? { small: [], large: [] };
    const ratio = percentile(counts.large, 0.5) / percentile(counts.small, 0.5);
    return [
      name,
      ...[counts.small, counts.large].flatMap((ms) => [percentile(ms, 0.5), percentile(ms, 0.99)]),
      ratio,
      ...costColumns(run),
    ];
  });
  printTable(
    [
      'call',
      'small p50 ms',
      'p99',
      'large p50 ms',
      'p99',
      'ratio p50',
      'pages',
      'rows read',
      'rows returned',
      'statement that reads most',
    ],
    rows,
  );
}

function costColumns({ small, large }: { small: readonly RunStatement[]; large: readonly RunStatement[] }): string[] {
  const sum = (all: readonly RunStatement[], of: 'pages' | 'read' | 'returned'): number =>
    all.reduce((total, each) => total + each[of], 0);
  const most = large.toSorted((a, b) => b.read - a.read)[0];
  return [
    ...(['pages', 'read', 'returned'] as const).map((of) => `${sum(small, of)} → ${sum(large, of)}`),
    most ? `${most.name}: ${most.read} for ${most.returned}, ${most.busiest}` : '',
  ];
}

const home = await mkdtemp(join(tmpdir(), 'holdfast-scale-'));
const log = await PlanLog.start(join(home, 'postgres'));
const sides: ServedDatabase[] = [];
try {
  const small = await startSide(log, 'small', smallSizes);
  sides.push(small);
  const large = await startSide(log, 'large', sizes);
  sides.push(large);
  const isWanted = ({ name }: ScaleCall): boolean => name.includes(values.only);
  const lists = async ({ server }: ServedDatabase): Promise<readonly ScaleCall[]> =>
    listCalls(server.url, server.token);
  const [smallLists, largeLists] = [await lists(small), await lists(large)];
  console.log(`\nCalls at load ${await loadAverage()}: ${JSON.stringify(sizes)}\n`);
  await measure(
    protocolCalls(small.server.url, small.server.token),
    protocolCalls(large.server.url, large.server.token),
    log,
  );
  console.log(`\nLists of stacks at load ${await loadAverage()}\n`);
  await measure(smallLists.filter(isWanted), largeLists.filter(isWanted), log);
  console.log(`\nSweeps that find nothing, and reads of the metrics, at load ${await loadAverage()}\n`);
  printTable(
    ['statement', 'small ms', 'large ms', 'pages', 'rows read', 'busiest'],
    await sweepStatements(small.url, large.url),
  );
  console.log(`\nHistory without pages at load ${await loadAverage()}\n`);
  await measureWholeHistory(large, sizes.deep);
  console.log(`\nDeletion at load ${await loadAverage()}\n`);
  await measureDeletion(large, sizes.deep);
} finally {
  for (const { server } of sides) await server[Symbol.asyncDispose]();
  await log.postgres.stop();
  await rm(home, { recursive: true, force: true });
}

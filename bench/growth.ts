import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/shared/platform/db/embedded-postgres.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { tuned } from '../testkit/tuned.ts';
import { bulkFlags, withoutIndexes } from './support/bulk-load.ts';
import { createDatabase, ownDatabaseSettings } from './support/databases.ts';
import { prepare, type ReadCall, readCalls } from './support/growth-calls.ts';
import { seedDerived } from './support/growth-seed.ts';
import { loadAverage, printTable } from './support/measures.ts';
import { protocolCalls } from './support/scale-calls.ts';
import { seed } from './support/scale-seed.ts';
import { countingFlags, type StatementCost, StatementPages } from './support/statement-pages.ts';

/**
 * What grows with the number of stacks: the pages that each call of the protocol, each read of the API and each background task touches.
 * Organizations grow with the database. Pages do not depend on what else the machine does; times are the least of three.
 * A million stacks take 15 GB, under TMPDIR.
 * Usage: npm run bench growth -- [--sizes 10000,100000] [--updates 1] [--organizations 10] [--only text] [--minutes 10]
 */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10000,100000' },
    /** For each stack. */
    updates: { type: 'string', default: '1' },
    organizations: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    /** A task that has not ended by then is measured as far as it got. */
    minutes: { type: 'string', default: '10' },
  },
});

interface TaskRun {
  readonly name: string;
  readonly isUnfinished: boolean;
  readonly error: string | null;
}

interface MeasuredCall {
  readonly status: number;
  readonly ms: number;
  readonly statements: Map<string, StatementCost>;
}

interface Side {
  readonly calls: Map<string, MeasuredCall>;
  readonly tasks: Map<string, StatementCost>;
}

const note = (text: string): void => console.error(text);

async function measureSide(postgresUrl: string, name: string, stacks: number): Promise<Side> {
  const url = await createDatabase(postgresUrl, name);
  const common = ownDatabaseSettings(url);
  const calls: Side['calls'] = new Map();
  const pages = await StatementPages.open(postgresUrl, name);
  try {
    {
      await using server = await startOwnHoldfast({ ...common, HOLDFAST_REQUESTS_PER_MINUTE: '1000000' });
      const updates = stacks * Number(values.updates);
      const sizes = { stacks, updates, checkpoints: stacks, events: 0, entries: 0, deep: 10_000 };
      const organizations = Number(values.organizations);
      const projects = Math.max(organizations, Math.round(stacks / 100));
      const progress = (text: string): void => note(`${name}: ${text}`);
      await withoutIndexes(
        url,
        async () => {
          await seed(url, { ...sizes, organizations, projects, running: 1_000, isLean: true }, 'ada', progress);
          await seedDerived(url, progress);
        },
        progress,
      );
      const begun = performance.now();
      await administer(url, 'vacuum (analyze)');
      progress(`vacuum in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
      const [size] = await administer<{ gb: number }>(
        url,
        'select pg_database_size(current_database()) / 1e9::float8 as gb',
      );
      progress(`${size?.gb.toFixed(1)} GB`);
      await administer(url, `update users set site_admin = true where login = 'ada'`);
      const metrics = await measureOnce({ name: 'GET /metrics', run: () => readMetrics(server.url) }, pages);
      calls.set('GET /metrics', metrics);
      const ids = await prepare(server);
      for (const call of await readCalls(server, ids)) {
        if (!call.name.includes(values.only)) continue;
        await call.run();
        for (let run = 0; run < 3; run++) keepLeast(calls, call.name, await measureOnce(call, pages));
      }
      const writes = values.only === '' ? protocolCalls(server.url, server.token) : [];
      for (let round = 0; round < 4; round++)
        for (const call of writes) {
          const measured = await measureOnce({ name: call.name, run: () => call.run().then(() => 200) }, pages);
          if (round > 0) keepLeast(calls, call.name, measured);
        }
    }
    return { calls, tasks: await measureTasks(url, common, pages) };
  } finally {
    await pages.close();
  }
}

/** Keeps the run that touches the least pages: the first one fills caches, and work in the background may coincide with any. */
function keepLeast(calls: Side['calls'], name: string, run: MeasuredCall): void {
  const least = calls.get(name);
  const ms = Math.min(run.ms, least?.ms ?? run.ms);
  const isLess = least === undefined || sum(run.statements, 'pages') < sum(least.statements, 'pages');
  calls.set(name, { ...(isLess ? run : least), ms });
}

async function measureOnce(call: ReadCall, pages: StatementPages): Promise<MeasuredCall> {
  await pages.reset();
  const begun = performance.now();
  const status = await call.run();
  const ms = performance.now() - begun;
  return { status, ms, statements: await pages.read() };
}

async function readMetrics(url: string): Promise<number> {
  const response = await fetch(`${url}/metrics`);
  await response.arrayBuffer();
  return response.status;
}

/** Runs each background task once, in a database in which there is little to do. */
async function measureTasks(
  url: string,
  common: Record<string, string>,
  pages: StatementPages,
): Promise<Map<string, StatementCost>> {
  await administer(url, `update updates set expires_at = now() + interval '290 seconds' where status = 'running'`);
  await administer(url, 'delete from maintenance_runs');
  await pages.reset();
  await using server = await startOwnHoldfast({ ...common, ...tuned({ sweepSeconds: 2 }) });
  const untilMs = performance.now() + 60_000 * Number(values.minutes);
  for (let seen = 0; ; await sleep(3_000)) {
    const started = await administer<TaskRun>(
      url,
      'select name, last_ended_at is null as "isUnfinished", last_error as error from maintenance_runs',
    );
    // One that has failed does not run again for up to an hour.
    const running = started.filter(({ error, isUnfinished }) => isUnfinished && error === null);
    const isLate = performance.now() > untilMs;
    if (isLate)
      note(`tasks that did not end: ${running.map(({ name }) => name).join(', ')}\n${server.log().slice(-2_000)}`);
    if (isLate || (started.length === seen && seen > 20 && running.length === 0)) {
      for (const { error, name } of started) if (error !== null) note(`task ${name} has failed: ${error}`);
      return pages.read();
    }
    seen = started.length;
  }
}

async function administer<T extends pg.QueryResultRow>(url: string, statement: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 });
  await client.connect();
  try {
    const { rows } = await client.query<T>(statement);
    return rows;
  } finally {
    await client.end();
  }
}

function sum(statements: Map<string, StatementCost>, of: 'pages' | 'rows'): number {
  return [...statements.values()].reduce((total, each) => total + each[of], 0);
}

function printCalls(sides: readonly Side[]): void {
  const [first, last] = [sides[0], sides.at(-1)] as [Side, Side];
  const rows = [...last.calls].map(([name, { status, statements }]) => {
    const before = first.calls.get(name)?.statements ?? new Map<string, StatementCost>();
    const all = sides.map(({ calls }) => calls.get(name));
    const counts = all.map((call) => sum(call?.statements ?? new Map(), 'pages'));
    const ratio = (counts.at(-1) ?? 0) / Math.max(1, counts[0] ?? 0);
    const grown = ([of, { pages }]: [string, StatementCost]): number => pages - (before.get(of)?.pages ?? 0);
    const [most] = [...statements].sort((a, b) => grown(b) - grown(a));
    const times = all.map((call) => (call?.ms ?? 0).toFixed(0)).join('/');
    const returned = [before, statements].map((each) => sum(each, 'rows')).join('/');
    return { ratio, cells: [name, String(status), counts.join('/'), ratio, times, returned, most?.[0] ?? ''] };
  });
  printTable(
    ['call', 'status', 'pages', 'ratio', 'ms', 'rows', 'statement that grows most'],
    rows.sort((a, b) => b.ratio - a.ratio).map(({ cells }) => cells),
  );
}

function printTasks(sides: readonly Side[]): void {
  const of = (side: Side | undefined, name: string): StatementCost =>
    side?.tasks.get(name) ?? { calls: 0, pages: 0, rows: 0 };
  const names = [...(sides.at(-1)?.tasks.keys() ?? [])];
  const rows = names.map((name) => {
    const costs = sides.map((side) => of(side, name));
    const [first, last] = [costs[0], costs.at(-1)].map(
      (cost) => (cost?.pages ?? 0) / Math.max(1, cost?.calls ?? 0),
    ) as [number, number];
    const join = (each: (cost: StatementCost) => number): string =>
      costs.map((cost) => each(cost).toFixed(0)).join('/');
    const cells = [
      ...[name, join(({ calls }) => calls), join(({ calls, pages }) => pages / Math.max(1, calls))],
      ...[last / Math.max(1, first), join(({ pages }) => pages), join((cost) => cost.rows)],
    ];
    return { growth: last - first, cells };
  });
  printTable(
    ['statement', 'calls', 'pages per call', 'ratio', 'pages', 'rows'],
    rows.sort((a, b) => b.growth - a.growth).map(({ cells }) => cells),
  );
}

const home = await mkdtemp(join(tmpdir(), 'holdfast-growth-'));
const flags = [...countingFlags, ...bulkFlags];
const postgres = await startEmbeddedPostgres(join(home, 'postgres'), createLogger({ level: 'warn' }), { flags });
try {
  const sizes = values.sizes.split(',').map(Number);
  const sides: Side[] = [];
  for (const stacks of sizes) {
    sides.push(await measureSide(postgres.url, `stacks_${stacks}`, stacks));
    console.log(`\nCalls, ${sizes.slice(0, sides.length).join('/')} stacks, load ${await loadAverage()}\n`);
    printCalls(sides);
    console.log('\nTasks\n');
    printTasks(sides);
  }
} finally {
  await postgres.stop();
  await rm(home, { recursive: true, force: true });
}

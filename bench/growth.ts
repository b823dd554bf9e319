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
import { createDatabase, ownDatabaseSettings } from './support/databases.ts';
import { prepare, type ReadCall, readCalls } from './support/growth-calls.ts';
import { seedDerived } from './support/growth-seed.ts';
import { loadAverage, printTable } from './support/measures.ts';
import { seed } from './support/scale-seed.ts';
import { countingFlags, type StatementCost, StatementPages } from './support/statement-pages.ts';

/**
 * What grows with the number of stacks: the pages that each read of the API and each background task touches, at two sizes.
 * Organizations grow with the database. Pages do not depend on what else the machine does.
 * Usage: npm run bench growth -- [--small 10000] [--large 100000] [--updates 10] [--organizations 10] [--only text]
 */
const { values } = parseArgs({
  options: {
    small: { type: 'string', default: '10000' },
    large: { type: 'string', default: '100000' },
    /** For each stack. */
    updates: { type: 'string', default: '10' },
    organizations: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
  },
});

interface TaskRun {
  readonly name: string;
  readonly isUnfinished: boolean;
  readonly error: string | null;
}

/** What has not ended by then is measured as far as it got. */
const tasksMs = 600_000;

interface MeasuredCall {
  readonly status: number;
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
      await seed(url, { ...sizes, organizations, projects, running: 1_000 }, 'ada', progress);
      await seedDerived(url, progress);
      await administer(url, `update users set site_admin = true where login = 'ada'`);
      const ids = await prepare(server);
      for (const call of await readCalls(server, ids)) {
        if (!call.name.includes(values.only)) continue;
        calls.set(call.name, await leastOf(call, pages));
      }
    }
    return { calls, tasks: await measureTasks(url, common, pages) };
  } finally {
    await pages.close();
  }
}

/** The run that touches the least pages: the first one fills caches, and work in the background may coincide with any. */
async function leastOf(call: ReadCall, pages: StatementPages): Promise<MeasuredCall> {
  await call.run();
  let least: MeasuredCall | null = null;
  for (let run = 0; run < 3; run++) {
    await pages.reset();
    const status = await call.run();
    const statements = await pages.read();
    if (least === null || sum(statements, 'pages') < sum(least.statements, 'pages')) least = { status, statements };
  }
  return least as MeasuredCall;
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
  const untilMs = performance.now() + tasksMs;
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

function printCalls(small: Side, large: Side): void {
  const rows = [...large.calls].map(([name, { status, statements }]) => {
    const before = small.calls.get(name)?.statements ?? new Map<string, StatementCost>();
    const growth = sum(statements, 'pages') - sum(before, 'pages');
    const grown = ([of, { pages }]: [string, StatementCost]): number => pages - (before.get(of)?.pages ?? 0);
    const [most] = [...statements].sort((a, b) => grown(b) - grown(a));
    const [was, is] = [before, statements].map((each) => String(sum(each, 'pages'))) as [string, string];
    const [rowsWere, rowsAre] = [before, statements].map((each) => String(sum(each, 'rows'))) as [string, string];
    return { growth, cells: [name, String(status), was, is, rowsWere, rowsAre, most?.[0] ?? ''] };
  });
  printTable(
    ['call', 'status', 'pages, small', 'large', 'rows, small', 'large', 'statement that grows most'],
    rows.sort((a, b) => b.growth - a.growth).map(({ cells }) => cells),
  );
}

function printTasks(small: Side, large: Side): void {
  const perCall = (cost: StatementCost | undefined): number => (cost ? cost.pages / cost.calls : 0);
  const rows = [...large.tasks].map(([name, cost]) => ({ name, cost, before: small.tasks.get(name) }));
  rows.sort((a, b) => perCall(b.cost) - perCall(b.before) - (perCall(a.cost) - perCall(a.before)));
  printTable(
    ['statement', 'calls, small', 'large', 'pages per call, small', 'large', 'rows, small', 'large'],
    rows.map(({ name, cost, before }) => [
      ...[name, String(before?.calls ?? 0), String(cost.calls), perCall(before).toFixed(0), perCall(cost).toFixed(0)],
      ...[String(before?.rows ?? 0), String(cost.rows)],
    ]),
  );
}

const home = await mkdtemp(join(tmpdir(), 'holdfast-growth-'));
const flags = [...countingFlags, '-c', 'shared_buffers=512MB', '-c', 'max_wal_size=4GB', '-c', 'max_connections=60'];
const postgres = await startEmbeddedPostgres(join(home, 'postgres'), createLogger({ level: 'warn' }), { flags });
try {
  const small = await measureSide(postgres.url, 'small', Number(values.small));
  const large = await measureSide(postgres.url, 'large', Number(values.large));
  console.log(`\nReads, ${values.small} and ${values.large} stacks, load ${await loadAverage()}\n`);
  printCalls(small, large);
  console.log('\nBackground tasks\n');
  printTasks(small, large);
} finally {
  await postgres.stop();
  await rm(home, { recursive: true, force: true });
}

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { percentile } from '../../bench/support/figures.ts';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { listRoutes } from '../support/routes.ts';
import { createTestApp } from '../support/test-app.ts';
import { type MeasuredServer, startMeasuredServer } from './support/worst/measured-server.ts';
import { procedureSamples } from './support/worst/procedures.ts';
import { routeCalls, unknownRoutes } from './support/worst/routes.ts';
import { type CallerRole, createWorld, roles, send, type World, type WorstCall } from './support/worst/world.ts';

// Each call of each role, with the worst data that members of an organization can have stored, while somebody of another organization asks who
// they are. What is asserted is the processor time of single turns of the event loop, which a busy machine does not change much.

/** The walk is part of the long form, as in abuse.test.ts: its data take a minute to be stored. */
const isLong = Number(process.env['HOLDFAST_TEST_ABUSE_SECONDS'] ?? 3) >= 15;
/**
 * What one turn of the event loop may take of a processor, in ms. Most calls stay below 50. Above: configurations of 12 policy packs of 1 MiB each
 * (180), and what garbage collection and background tasks add to single calls (280).
 */
const mostMs = 600;
const mostMegabytes = 400;
const shownMs = 20;

interface Row {
  readonly role: CallerRole;
  readonly call: string;
  readonly data: string;
  readonly status: number;
  readonly longestMs: number;
  readonly rss: number;
  readonly others: readonly number[];
}

const rows: Row[] = [];
let server: MeasuredServer;
let world: World;
let routes: readonly string[];
let quiet = '';

beforeAll(async () => {
  server = await startMeasuredServer({ HOLDFAST_DELETED_STACK_DAYS: '7' });
  await using app = await createTestApp({ database: server.database });
  routes = listRoutes(app.app);
  quiet = `token ${await app.createUser('quiet', 'member')}`;
  if (isLong) world = await createWorld(server, app);
  else console.warn('The walk of all calls is left out: HOLDFAST_TEST_ABUSE_SECONDS is below 15');
}, 900_000);

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  if (!isLong) return;
  const others = rows.flatMap((row) => row.others);
  const worst = [...rows].sort((a, b) => b.longestMs - a.longestMs).filter(({ longestMs }) => longestMs >= shownMs);
  const head = ['role', 'call', 'data', 'status', 'longest turn ms', 'others p99 ms', 'max', 'RSS MB'];
  const lines = worst.map((row) => [
    ...[row.role, row.call, row.data, row.status, row.longestMs.toFixed(0)],
    ...[percentile(row.others, 0.99), Math.max(...row.others), row.rss / 2 ** 20].map((figure) => figure.toFixed(0)),
  ]);
  const table = [head, ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n');
  const all = [0.5, 0.99, 1].map((share) => percentile(others, share).toFixed(0)).join(', ');
  process.stderr.write(`\n${table}\n${rows.length} calls; others' p50, p99, max: ${all} ms\n`);
});

const procedures = Object.entries(
  appRouter._def.procedures as unknown as Record<string, { _def: { type: string; meta: ProcedureMeta } }>,
).filter(([, { _def }]) => _def.type !== 'subscription');

/** Asks as the other tenant, continually. */
async function askAside(signal: AbortSignal): Promise<number[]> {
  const latencies: number[] = [];
  do {
    const began = performance.now();
    const response = await send(server, { method: 'GET', path: '/api/user', auth: quiet });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
    latencies.push(performance.now() - began);
  } while (!signal.aborted);
  return latencies;
}

async function measure(role: CallerRole, name: string, data: string, call: WorstCall): Promise<void> {
  await server.read();
  const end = new AbortController();
  const aside = askAside(end.signal);
  const response = await send(server, call);
  const reader = response.body?.getReader();
  while (reader && !(await reader.read()).done);
  end.abort();
  const others = await aside;
  const { longestMs, rss } = await server.read();
  rows.push({ role, call: name, data, status: response.status, longestMs, rss, others });
}

function procedureCalls(role: CallerRole): { name: string; data: string; type: string; input: object }[] {
  return procedures.flatMap(([name, { _def }]) => {
    const sample = procedureSamples[name] ?? {};
    const isOfStack = _def.meta.access?.kind === 'stack' && role !== 'stranger';
    const place = { organization: world.organization, project: 'proj' };
    const isChange = _def.type === 'mutation' && _def.meta.cost !== 'states' && name !== 'secrets.reveal';
    const stacks = isOfStack ? (isChange ? ['plain'] : world.stacks) : ['deep'];
    return [...stacks, ...(isOfStack && !isChange ? ['plain'] : [])].flatMap((stack) => {
      const inputs = [typeof sample === 'function' ? sample(stack, world) : sample].flat();
      return inputs.map((input) => ({ name, data: stack, type: _def.type, input: { ...place, stack, ...input } }));
    });
  });
}

test('every procedure and every route has a sample', () => {
  expect(procedures.map(([name]) => name).sort()).toEqual(Object.keys(procedureSamples).sort());
  expect(unknownRoutes(routes)).toEqual([]);
});

(isLong ? test : test.skip).each(roles)(
  'no procedure keeps the event loop from others: %s',
  async (role) => {
    for (const { data, input, name, type } of procedureCalls(role)) {
      const auth = world.auth[role];
      const isQuery = type === 'query';
      const path = isQuery ? `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}` : `/trpc/${name}`;
      await measure(role, name, data, {
        method: isQuery ? 'GET' : 'POST',
        path,
        auth,
        body: isQuery ? undefined : input,
      });
    }
    expectBounded(role);
  },
  900_000,
);

(isLong ? test : test.skip).each(roles)(
  'no route keeps the event loop from others: %s',
  async (role) => {
    for (const { data, name, ...call } of routeCalls(routes, world, role)) await measure(role, name, data, call);
    expectBounded(role);
  },
  900_000,
);

function expectBounded(role: CallerRole): void {
  const own = rows.filter((row) => row.role === role);
  expect(
    own
      .filter(({ longestMs }) => longestMs > mostMs)
      .map(({ call, data, longestMs }) => `${call} ${data}: ${longestMs.toFixed(0)} ms`),
  ).toEqual([]);
  expect(
    own
      .filter(({ status }) => status >= 500 && status !== 503)
      .map(({ call, data, status }) => `${call} ${data}: ${status}`),
  ).toEqual([]);
  expect(Math.max(...own.map(({ rss }) => rss)) / 2 ** 20).toBeLessThan(mostMegabytes);
}

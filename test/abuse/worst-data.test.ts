import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { percentile } from '../../bench/support/measures.ts';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { listRoutes } from '../support/routes.ts';
import { createTestApp } from '../support/test-app.ts';
import { type LoopReading, type MeasuredServer, startMeasuredServer } from './support/worst/measured-server.ts';
import { procedureSamples } from './support/worst/procedures.ts';
import { routeCalls, unknownRoutes } from './support/worst/routes.ts';
import {
  type CallerRole,
  createWorld,
  type EncodedCall,
  encode,
  roles,
  send,
  type World,
  type WorstCall,
} from './support/worst/world.ts';

// Each call of each role, with the worst data that members of an organization can have stored, while somebody of another organization asks who
// they are. What is asserted is the processor time of single turns of the event loop, which a busy machine does not change much.

/** The walk is part of the long form, as in abuse.test.ts: its data take a minute to be stored. */
const isLong = Number(process.env['HOLDFAST_TEST_ABUSE_SECONDS'] ?? 3) >= 15;
/**
 * What one turn of the event loop may take of a processor, in ms. Most calls stay below 30. Above: the blame of a resource whose 40,000
 * properties have names of 150 characters, which are sorted (70), and values of 8 MiB (35).
 */
const mostMs = 100;
/** What 99 of 100 calls of the other tenant may take, in ms, or `mostTimes` of what they take without the walk, on a busy machine. */
const mostOtherMs = 100;
const mostTimes = 4;
const mostMegabytes = 400;
const shownMs = 30;
/** How often a call that takes longer is made: the least counts, because garbage collection and background tasks hit any call. */
const mostCalls = 4;

interface Row {
  readonly role: CallerRole;
  readonly call: string;
  readonly data: string;
  readonly status: number;
  /** Of the call when it took least. */
  readonly longestMs: number;
  /** Of the first call, and the longest garbage collection in it. */
  readonly firstMs: number;
  readonly collectionMs: number;
  readonly rss: number;
  readonly others: readonly number[];
  /** Of a fault: the beginning of its response. */
  readonly text: string;
}

const rows: Row[] = [];
/** Latencies of the other tenant between the calls of the walk. */
const alone: number[] = [];
let server: MeasuredServer;
let world: World;
let routes: readonly string[];
let quiet = '';

beforeAll(async () => {
  server = await startMeasuredServer({
    HOLDFAST_DELETED_STACK_DAYS: '7',
    // Both tenants make as many calls as the server can answer.
    HOLDFAST_REQUESTS_PER_MINUTE: '1000000',
  });
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
  const worst = [...rows].sort((a, b) => b.longestMs - a.longestMs).filter(({ firstMs }) => firstMs >= shownMs);
  const head = [
    'role',
    'call',
    'data',
    'status',
    'longest turn ms',
    'first',
    'its gc',
    'others p99 ms',
    'max',
    'RSS MB',
  ];
  const lines = worst.map((row) => [
    ...[row.role, row.call, row.data, row.status, row.longestMs.toFixed(0)],
    ...[row.firstMs, row.collectionMs, percentile(row.others, 0.99), Math.max(...row.others), row.rss / 2 ** 20].map(
      (figure) => figure.toFixed(0),
    ),
  ]);
  const table = [head, ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n');
  const latencies = [others, alone].map((each) =>
    [0.5, 0.99, 1].map((share) => percentile(each, share).toFixed(0)).join(', '),
  );
  const unavailable = rows
    .filter(({ status }) => status === 503)
    .map((row) => `${row.role} ${row.call} ${row.data}: ${row.text}`);
  process.stderr.write(
    `\n${table}\n${unavailable.join('\n')}\n${rows.length} calls; others' p50, p99, max: ${latencies[0]} ms; without the walk ${latencies[1]} ms\n`,
  );
});

const procedures = Object.entries(
  appRouter._def.procedures as unknown as Record<string, { _def: { type: string; meta: ProcedureMeta } }>,
).filter(([, { _def }]) => _def.type !== 'subscription');

/** Asks as the other tenant, continually. */
async function askAside(signal: AbortSignal): Promise<number[]> {
  const latencies: number[] = [];
  do latencies.push(await askOnce());
  while (!signal.aborted);
  return latencies;
}

async function askOnce(): Promise<number> {
  const began = performance.now();
  const response = await send(server, encode({ method: 'GET', path: '/api/user', auth: quiet }));
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  return performance.now() - began;
}

/** Makes the call, and again if a turn took long and it ends as before. */
async function measure(role: CallerRole, call: string, data: string, make: () => WorstCall): Promise<void> {
  const first = await measureOnce(encode(make()));
  const { collectionMs, longestMs: firstMs, status, text } = first;
  const all = [first];
  for (let at = 1; at < mostCalls && Math.min(...all.map(({ longestMs }) => longestMs)) > shownMs; at++) {
    const next = await measureOnce(encode(make()));
    if (next.status !== status) break;
    all.push(next);
  }
  const longestMs = Math.min(...all.map((each) => each.longestMs));
  const rss = Math.max(...all.map((each) => each.rss));
  const others = all.flatMap((each) => each.others);
  rows.push({ role, call, data, status, longestMs, firstMs, collectionMs, rss, others, text });
  if (firstMs > shownMs)
    process.stderr.write(
      `${role} ${call} ${data} ${status}: ${all.map((each) => each.longestMs.toFixed(0))} ms ${text}\n`,
    );
}

async function measureOnce(call: EncodedCall): Promise<LoopReading & Pick<Row, 'status' | 'others' | 'text'>> {
  alone.push(await askOnce());
  await server.read();
  const end = new AbortController();
  const aside = askAside(end.signal);
  const response = await send(server, call);
  const text = response.status >= 500 ? (await response.text()).slice(0, 500) : '';
  if (response.status < 500) await drain(response);
  end.abort();
  const others = await aside;
  return { ...(await server.read()), status: response.status, others, text };
}

/** Reads to the end. The server closes the connection of a body that it refuses. */
async function drain(response: Response): Promise<void> {
  try {
    for await (const _ of response.body ?? []);
  } catch (error) {
    if (response.status < 400 || !/EPIPE|ECONNRESET/.test(String(error))) throw error;
  }
}

interface ProcedureCall {
  readonly name: string;
  readonly data: string;
  readonly make: () => WorstCall;
}

function procedureCalls(role: CallerRole): ProcedureCall[] {
  const project = { organization: world.organization, project: 'proj' };
  return procedures.flatMap(([name, { _def }]) => {
    // In an organization, an operator calls the same as an admin.
    if (role === 'operator' && !/^(operator|me|tokens)\./.test(name)) return [];
    const sample = procedureSamples[name] ?? {};
    const isOfStack = _def.meta.access?.kind === 'stack' && role !== 'stranger';
    const isChange = _def.type === 'mutation' && _def.meta.cost !== 'states' && name !== 'secrets.reveal';
    const stacks = isOfStack ? (isChange ? ['plain'] : world.stacks) : ['deep'];
    const inputsOf = (stack: string): object[] =>
      [typeof sample === 'function' ? sample(stack, world) : sample].flat() as object[];
    return [...stacks, ...(isOfStack && !isChange ? ['plain'] : [])].flatMap((stack) =>
      inputsOf(stack).map((_, at) => ({
        ...{ name, data: stack },
        make: () => callOf(role, name, _def.type, { ...project, stack, ...inputsOf(stack)[at] }),
      })),
    );
  });
}

function callOf(role: CallerRole, name: string, type: string, input: object): WorstCall {
  const auth = world.auth[role];
  if (type !== 'query') return { method: 'POST', path: `/trpc/${name}`, auth, body: input };
  return { method: 'GET', path: `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}`, auth };
}

test('every procedure and every route has a sample', () => {
  expect(procedures.map(([name]) => name).sort()).toEqual(Object.keys(procedureSamples).sort());
  expect(unknownRoutes(routes)).toEqual([]);
});

(isLong ? test : test.skip).each(roles)(
  'no procedure keeps the event loop from others: %s',
  async (role) => {
    for (const { data, make, name } of procedureCalls(role)) await measure(role, name, data, make);
    expectBounded(role);
  },
  1_800_000,
);

// Calls that take data from others come last.
(isLong ? test : test.skip).each(
  (['others', 'ends'] as const).flatMap((which) => roles.map((role) => [role, which] as const)),
)(
  'no route keeps the event loop from others: %s, %s',
  async (role, which) => {
    for (const { data, make, name } of routeCalls(routes, world, role, which)) await measure(role, name, data, make);
    expectBounded(role);
  },
  1_800_000,
);

(isLong ? test : test.skip)('the calls of the other tenant take not much longer than without the walk', () => {
  const others = rows.flatMap((row) => row.others);
  expect(percentile(others, 0.99)).toBeLessThan(Math.max(mostOtherMs, mostTimes * percentile(alone, 0.99)));
});

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
      .map(({ call, data, status, text }) => `${call} ${data}: ${status} ${text}`),
  ).toEqual([]);
  expect(Math.max(...own.map(({ rss }) => rss)) / 2 ** 20).toBeLessThan(mostMegabytes);
}

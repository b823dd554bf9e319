import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, loopDelayOf, memoryOf, percentile, printTable } from './support/measures.ts';
import { postgresCpuSeconds } from './support/process-cpu.ts';
import { sendCall } from './support/send-call.ts';

/**
 * The update queue: waiting calls, and the time until the next update.
 * Calls wait for stacks that other updates lock. Prints memory and CPU time per waiting call, database connections, and the
 * time from the call that releases a stack to the response to the first call in the queue: with one release after another,
 * and with all stacks released at once.
 * Usage: npm run bench queue -- [--stacks 100] [--waiters 1000] [--idle-seconds 20]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '100' },
    waiters: { type: 'string', default: '1000' },
    'idle-seconds': { type: 'string', default: '20' },
  },
});
const stackCount = Number(values.stacks);
const waiterCount = Number(values.waiters);
const idleSeconds = Number(values['idle-seconds']);
const project = '/api/stacks/dev-org/bench';

await using server = await startOwnHoldfast({
  HOLDFAST_LOG_LEVEL: 'warn',
  HOLDFAST_LOCK_WAIT_SECONDS: '3600',
  HOLDFAST_LONG_POLL_SECONDS: '3600',
  // One address may have a quarter.
  HOLDFAST_MAX_CONNECTIONS: String(4 * (waiterCount + 100)),
});
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const target = { url: new URL(server.url), agent };

/** The body of a 2xx response, and when it came, by `performance.now()`. */
async function call(method: string, path: string, body: object): Promise<{ text: string; at: number }> {
  const text = await sendCall(target, method, path, body, `token ${server.token}`);
  return { text, at: performance.now() };
}

async function waitingCalls(): Promise<number> {
  const text = await (await fetch(`${server.managementUrl}/metrics`)).text();
  return Number(/^holdfast_update_queue_calls (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

interface Queue {
  readonly path: string;
  /** Id of the update that holds the stack. */
  holder: string;
  /** Responses to the calls that wait, in their order. */
  readonly waiting: Promise<{ text: string; at: number }>[];
}

const create = (path: string) => call('POST', `${path}/update`, {});
const idOf = ({ text }: { text: string }): string => (JSON.parse(text) as { updateID: string }).updateID;

/** Returns how long the next update waited for its response, in ms. */
async function release(queue: Queue): Promise<number> {
  const next = queue.waiting.shift();
  if (!next) throw new Error('Nobody waits');
  const began = performance.now();
  await call('POST', `${queue.path}/update/${queue.holder}/cancel`, {});
  const created = await next;
  queue.holder = idOf(created);
  return created.at - began;
}

const queues: Queue[] = [];
for (let at = 0; at < stackCount; at++) {
  await call('POST', project, { stackName: `s${at}` });
  const path = `${project}/s${at}`;
  queues.push({ path, holder: idOf(await create(path)), waiting: [] });
}
const data = new DataFolder(server.dataDir);
const sessions = async (): Promise<number> =>
  Number(
    (await data.query(`select count(*) from pg_stat_activity where backend_type = 'client backend'`))[0]?.['count'],
  );
const [memoryBefore, sessionsBefore] = [(await memoryOf(server.pid())).now, await sessions()];
for (let at = 0; at < waiterCount; at++) {
  const queue = queues[at % stackCount] as Queue;
  queue.waiting.push(create(queue.path));
  // In a known order on each stack.
  if (at % stackCount === stackCount - 1) while ((await waitingCalls()) < at + 1) await sleep(20);
}
while ((await waitingCalls()) < waiterCount) await sleep(20);
await sleep(2_000);
const cpu = async (): Promise<[number, number]> => [
  await cpuSecondsOf(server.pid()),
  await postgresCpuSeconds(server.dataDir),
];
const [serverBefore, postgresBefore] = await cpu();
await sleep(idleSeconds * 1000);
const [serverAfter, postgresAfter] = await cpu();
const [memoryWaiting, sessionsWaiting] = [(await memoryOf(server.pid())).now, await sessions()];

console.log(`load ${await loadAverage()}; ${waiterCount} calls wait for ${stackCount} stacks\n`);
printTable(
  ['while they wait', ''],
  [
    ['memory of the server per waiting call, kB', ((memoryWaiting - memoryBefore) * 1024) / waiterCount],
    ['CPU of the server, ms per second', ((serverAfter - serverBefore) * 1000) / idleSeconds],
    ['CPU of Postgres, ms per second', ((postgresAfter - postgresBefore) * 1000) / idleSeconds],
    ['database connections before, with them', `${sessionsBefore}, ${sessionsWaiting}`],
  ],
);

await loopDelayOf(server.managementUrl);
const rounds = Math.floor(waiterCount / stackCount);
const oneByOne: number[] = [];
for (let round = 0; round < Math.ceil(rounds / 2); round++)
  for (const queue of queues) oneByOne.push(await release(queue));
const atOnce: number[] = [];
for (let round = Math.ceil(rounds / 2); round < rounds; round++)
  atOnce.push(...(await Promise.all(queues.map((queue) => release(queue)))));
const loop = await loopDelayOf(server.managementUrl);
console.log('');
printTable(
  ['from release to the next update, ms', 'releases', 'p50', 'p99', 'max'],
  [
    ['one stack after another', ...rowOf(oneByOne)],
    [`${stackCount} stacks at once`, ...rowOf(atOnce)],
  ],
);
console.log(`\nevent loop of the server: p99 ${loop.p99.toFixed(0)} ms, max ${loop.max.toFixed(0)} ms`);
agent.destroy();

function rowOf(latencies: readonly number[]): (string | number)[] {
  return [String(latencies.length), percentile(latencies, 0.5), percentile(latencies, 0.99), Math.max(...latencies)];
}

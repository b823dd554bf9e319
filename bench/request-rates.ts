import { randomUUID } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { parseArgs } from 'node:util';
import type { Caller } from '../src/api/platform/http/request.ts';
import { RequestRates } from '../src/api/platform/rates/request-rates.ts';
import { SharedRateCounters } from '../src/api/platform/rates/shared-rate-counters.ts';
import { parseConfig } from '../src/shared/platform/config/config.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { createMetrics } from '../src/shared/platform/telemetry/metrics.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { cpuSecondsOf, loadAverage, median, printTable } from './support/measures.ts';

/**
 * What it costs to count requests for rate limits.
 * Two servers, one without limits and one whose limits are counted and never reached, get the same small requests in turn.
 * Prints the CPU time of each server per request, and what counting alone takes.
 * Usage: npm run bench request-rates -- [--pairs 15] [--requests 3000]
 */
const { values } = parseArgs({
  options: { pairs: { type: 'string', default: '15' }, requests: { type: 'string', default: '3000' } },
});
const pairs = Number(values.pairs);
const requests = Number(values.requests);
const lines = 4;

const limits = (perMinute: string): Record<string, string> => ({
  HOLDFAST_LOG_LEVEL: 'warn',
  HOLDFAST_REQUESTS_PER_MINUTE: perMinute,
});

/** The least that a call with a token can be. */
async function load(server: OwnHoldfastServer, agent: Agent, count: number): Promise<void> {
  const { hostname, port } = new URL(server.url);
  const headers = { accept: 'application/vnd.pulumi+9', authorization: `token ${server.token}` };
  let left = count;
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({ agent, hostname, port, path: '/api/registry/packages', headers }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`${response.statusCode}`));
        response.on('error', reject).on('end', resolve).resume();
      });
      sent.on('error', reject).end();
    });
  await Promise.all(
    Array.from({ length: lines }, async () => {
      while (left-- > 0) await one();
    }),
  );
}

await using without = await startOwnHoldfast(limits('0'));
await using withLimits = await startOwnHoldfast(limits('100000000'));
const agents = new Map([without, withLimits].map((server) => [server, new Agent({ keepAlive: true })]));
const costOf = async (server: OwnHoldfastServer, count = requests): Promise<number> => {
  const before = await cpuSecondsOf(server.pid());
  await load(server, agents.get(server) as Agent, count);
  return ((await cpuSecondsOf(server.pid())) - before) * (1000 / count);
};
for (const server of [without, withLimits, without, withLimits]) await costOf(server);
const costs: [number[], number[]] = [[], []];
for (let pair = 0; pair < pairs; pair++) {
  // In both orders, so that a drift of the machine does not count.
  const order = pair % 2 === 0 ? [0, 1] : [1, 0];
  for (const at of order) costs[at as 0 | 1].push(await costOf(at === 0 ? without : withLimits));
}
for (const agent of agents.values()) agent.destroy();
console.log(`load ${await loadAverage()}, ${pairs} pairs of ${requests} requests\n`);
const [none, limited] = costs.map((each) => each.reduce((sum, cost) => sum + cost, 0) / each.length) as [
  number,
  number,
];
printTable(
  ['CPU ms per request', 'mean', 'median'],
  [
    ['without limits', none.toFixed(3), median(costs[0]).toFixed(3)],
    ['with limits', limited.toFixed(3), median(costs[1]).toFixed(3)],
    ['ratio', (limited / none).toFixed(3), (median(costs[1]) / median(costs[0])).toFixed(3)],
  ],
);
console.log(`\ncounting alone: ${countingMs().toFixed(4)} CPU ms per request`);

/** CPU time of counting one request by address, token and user, in ms: the smallest of several rounds. */
function countingMs(): number {
  const count = 200_000;
  const logger = createLogger({ level: 'silent' });
  const rates = new RequestRates({
    perMinute: { token: 1e9, user: 1e9, address: 1e9 },
    trustedProxies: parseConfig({ HOLDFAST_TRUSTED_PROXIES: '10.0.0.0/8' }).trustedProxies,
    counters: new SharedRateCounters({ report: async () => [], logger }),
    metrics: createMetrics(),
    logger,
  });
  const socket = { remoteAddress: '::ffff:10.0.0.1' };
  const message = { socket, headers: { 'x-forwarded-for': '198.51.100.7' } } as unknown as IncomingMessage;
  const caller = { login: 'a', tokenId: randomUUID(), tokenName: null, userId: randomUUID() } as unknown as Caller;
  const rounds = Array.from({ length: 5 }, () => {
    const began = process.cpuUsage();
    for (let request = 0; request < count; request++) {
      rates.takeForAddress(message, 0);
      rates.takeForCaller(caller, 0);
    }
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1000 / count;
  });
  return Math.min(...rounds);
}

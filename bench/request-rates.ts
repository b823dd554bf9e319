import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { cpuSecondsOf, loadAverage, median, printTable } from './support/figures.ts';

/**
 * Measures what limits of requests per minute cost: two servers, one without limits and one whose limits are counted and never
 * reached, get the same small requests in turns. Prints the CPU time of each server per request, and the ratio of each pair.
 * Usage: node bench/request-rates.ts [--pairs 15] [--requests 3000]
 */
const { values } = parseArgs({
  options: { pairs: { type: 'string', default: '15' }, requests: { type: 'string', default: '3000' } },
});
const pairs = Number(values.pairs);
const requests = Number(values.requests);
const lines = 4;

const limitNames = ['TOKEN', 'USER', 'ADDRESS'] as const;
const limits = (perMinute: string): Record<string, string> => ({
  HOLDFAST_LOG_LEVEL: 'warn',
  ...Object.fromEntries(limitNames.map((name) => [`HOLDFAST_${name}_REQUESTS_PER_MINUTE`, perMinute])),
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
const ratios: number[] = [];
const costs: [number[], number[]] = [[], []];
for (let pair = 0; pair < pairs; pair++) {
  // In both orders, so that a drift of the machine does not count.
  const isSwapped = pair % 2 === 1;
  const first = await costOf(isSwapped ? withLimits : without);
  const second = await costOf(isSwapped ? without : withLimits);
  const [none, limited] = isSwapped ? [second, first] : [first, second];
  costs[0].push(none);
  costs[1].push(limited);
  ratios.push(limited / none);
}
for (const agent of agents.values()) agent.destroy();
console.log(`load ${loadAverage()}, ${pairs} pairs of ${requests} requests\n`);
printTable(
  ['', 'CPU ms per request'],
  [
    ['without limits', median(costs[0])],
    ['with limits', median(costs[1])],
  ],
);
console.log(
  `\nratio, median of the pairs: ${median(ratios).toFixed(3)} (${ratios.map((each) => each.toFixed(2)).join(' ')})`,
);

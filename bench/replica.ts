import { parseArgs } from 'node:util';
import { migrate } from '../src/shared/platform/db/migrate.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { startPostgresPair } from '../testkit/postgres-pair.ts';
import { until } from '../testkit/until.ts';
import { ownDatabaseSettings } from './support/databases.ts';
import { loadAverage, percentile, printTable } from './support/measures.ts';
import { postgresCpuSecondsOf } from './support/process-cpu.ts';
import { stateOf } from './support/state-document.ts';

/**
 * Reads from the primary and from a replica.
 * Two servers on the same pair alternate: latency, and CPU time of the primary.
 * Usage: npm run bench replica -- [--rounds 20] [--calls 20] [--versions 100]
 */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    calls: { type: 'string', default: '20' },
    versions: { type: 'string', default: '100' },
  },
});
const rounds = Number(values.rounds);
const callsAtOnce = Number(values.calls);

/** CPU time of a Postgres server and its sessions, in ms. */
const cpuMsOf = async (postmaster: number): Promise<number> => (await postgresCpuSecondsOf(postmaster)) * 1000;

await using pair = await startPostgresPair({ isSynchronous: false });
await migrate({ url: pair.primaryUrl, connectMs: 10_000, waitMs: 10_000, logger: createLogger({ level: 'warn' }) });
const common = ownDatabaseSettings(pair.primaryUrl);
await using withoutReplica = await startOwnHoldfast(common);
await using withReplica = await startOwnHoldfast({ ...common, HOLDFAST_DATABASE_REPLICA_URL: pair.standbyUrl });
await until(
  async () =>
    (await (await fetch(`${withReplica.managementUrl}/metrics`)).text()).includes(
      'holdfast_replica_state{state="serving"} 1',
    ),
  'the replica serves',
);

const call = async (
  server: { url: string; token: string },
  method: string,
  path: string,
  body?: Buffer,
): Promise<void> => {
  const headers = { authorization: `token ${server.token}`, accept: 'application/vnd.pulumi+9' };
  const json = { 'content-type': 'application/json' };
  const init = body ? { method, headers: { ...headers, ...json }, body: new Uint8Array(body) } : { method, headers };
  const response = await fetch(`${server.url}${path}`, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 300)}`);
};
const stack = '/api/stacks/dev-org/bench/dev';
await call(withoutReplica, 'POST', '/api/stacks/dev-org/bench', Buffer.from('{"stackName":"dev"}'));
for (let version = 0; version < Number(values.versions); version++)
  await call(withoutReplica, 'POST', `${stack}/import`, stateOf(100_000, version + 1));

const reads = {
  'export, 100 KB': `${stack}/export`,
  'export of a version': `${stack}/export/1`,
  'history, all': `${stack}/updates`,
  'latest update': `${stack}/updates/latest`,
  'list of stacks': '/api/user/stacks',
};
console.log(`\nLoad ${await loadAverage()}, ${callsAtOnce} calls at once, ${rounds} rounds\n`);
const rows = [];
for (const [name, path] of Object.entries(reads)) {
  const sides = [withoutReplica, withReplica].map((server) => ({ server, ms: [] as number[], cpuMs: 0 }));
  for (let round = 0; round < rounds + 2; round++) {
    for (const side of sides) {
      const cpu = await cpuMsOf(pair.primary.pid);
      const times = await Promise.all(
        Array.from({ length: callsAtOnce }, async () => {
          const begun = performance.now();
          await call(side.server, 'GET', path);
          return performance.now() - begun;
        }),
      );
      // The first rounds fill caches.
      if (round < 2) continue;
      side.ms.push(...times);
      side.cpuMs += (await cpuMsOf(pair.primary.pid)) - cpu;
    }
  }
  const [without, using] = sides as [(typeof sides)[0], (typeof sides)[0]];
  const perCall = (cpuMs: number): number => cpuMs / (rounds * callsAtOnce);
  rows.push([
    name,
    ...[
      percentile(without.ms, 0.5),
      percentile(using.ms, 0.5),
      percentile(using.ms, 0.5) / percentile(without.ms, 0.5),
    ],
    ...[perCall(without.cpuMs), perCall(using.cpuMs), using.cpuMs / without.cpuMs],
  ]);
}
printTable(
  ['call', 'primary p50 ms', 'replica p50 ms', 'ratio', 'CPU of the primary, ms', 'with a replica', 'ratio'],
  rows,
);
const metrics = await (await fetch(`${withReplica.managementUrl}/metrics`)).text();
console.log(
  metrics
    .split('\n')
    .filter((line) => /^holdfast_replica_(reads|fallbacks)/.test(line))
    .join('\n'),
);

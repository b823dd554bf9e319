import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { until } from '../testkit/until.ts';
import { loadAverage, loopDelayOf, memoryOf, percentile, printTable, resetPeak } from './support/measures.ts';

/**
 * Procedures that read whole states.
 * On two stacks with many resources: how long they take, for how long they delay the event loop, and how long a small call
 * of another user takes meanwhile.
 * Usage: npm run bench scans -- [--resources 200000] [--at-once 4] [--calls resources.get,versions.diffStacks]
 */
const { values } = parseArgs({
  options: {
    resources: { type: 'string', default: '200000' },
    'at-once': { type: 'string', default: '4' },
    calls: { type: 'string' },
  },
});
const count = Number(values.resources);
const atOnce = Number(values['at-once']);
const organization = 'dev-org';

await using server = await startOwnHoldfast({ HOLDFAST_LOG_LEVEL: 'warn', HOLDFAST_REQUESTS_PER_MINUTE: '0' });
const headers = {
  accept: 'application/vnd.pulumi+9',
  authorization: `token ${server.token}`,
  'content-type': 'application/json',
};

const urnOf = (stack: string, at: number): string => `urn:pulumi:${stack}::bench::aws:s3/bucket:Bucket::bucket-${at}`;

function resourceOf(stack: string, at: number): string {
  const inputs = { acl: 'private', bucket: `bucket-${at}`, tags: { owner: 'platform', at: String(at) } };
  // Every hundredth resource is another one in the second stack.
  const acl = stack === 'two' && at % 100 === 0 ? 'public' : 'private';
  return JSON.stringify({
    urn: urnOf(stack, at),
    custom: true,
    id: `bucket-${at}`,
    type: 'aws:s3/bucket:Bucket',
    inputs: { ...inputs, acl },
    outputs: { ...inputs, arn: `arn:aws:s3:::bucket-${at}` },
    parent: `urn:pulumi:${stack}::bench::pulumi:pulumi:Stack::bench-${stack}`,
  });
}

async function call(method: string, path: string, body: string | Buffer | null, more = {}): Promise<string> {
  const response = await fetch(`${server.url}${path}`, { method, headers: { ...headers, ...more }, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path.slice(0, 100)}: ${response.status} ${text.slice(0, 300)}`);
  return text;
}

for (const stack of ['one', 'two']) {
  await call('POST', `/api/stacks/${organization}/bench`, JSON.stringify({ stackName: stack }));
  const resources = Array.from({ length: count }, (_, at) => resourceOf(stack, at));
  const document = `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[${resources.join(',')}]}}`;
  const body = gzipSync(document, { level: 1 });
  await call('POST', `/api/stacks/${organization}/bench/${stack}/import`, body, { 'content-encoding': 'gzip' });
  console.error(`${stack}: ${(document.length / 1e6).toFixed(0)} MB`);
}
// Until the states are indexed, which takes the server too.
const isIndexed = async (): Promise<boolean> => {
  const input = { organization, project: 'bench', stack: 'two' };
  const text = await call('GET', `/trpc/resources.list?input=${encodeURIComponent(JSON.stringify(input))}`, null);
  const { result } = JSON.parse(text) as { result: { data: { indexedVersion: number | null } } };
  return result.data.indexedVersion === 1;
};
await until(isIndexed, 'both states are indexed', { timeoutMs: 600_000, everyMs: 1_000 });
await sleep(5_000);

const ref = { organization, project: 'bench', stack: 'one' };
const urn = urnOf('one', count - 1);
const other = { organization, project: 'bench', stack: 'two' };
const calls: readonly (readonly [string, object])[] = [
  ['resources.get', { urn }],
  ['resources.blame', { urn }],
  ['versions.resources', { version: 1, text: 'bucket-77' }],
  ['versions.diff', { from: 0, to: 1 }],
  ['versions.diffStacks', { other }],
];

/** So many times at once, while a small call is repeated. */
async function measure([name, input]: readonly [string, object], times: number): Promise<(string | number)[]> {
  const path = `/trpc/${name}?input=${encodeURIComponent(JSON.stringify({ ...ref, ...input }))}`;
  await resetPeak(server.pid());
  await sleep(500);
  await loopDelayOf(server.managementUrl);
  const small: number[] = [];
  let isDone = false;
  const probing = (async () => {
    while (!isDone) {
      const begun = performance.now();
      await call('GET', `/api/stacks/${organization}/bench/one`, null);
      small.push(performance.now() - begun);
      await sleep(5);
    }
  })();
  const begun = performance.now();
  const results = await Promise.allSettled(Array.from({ length: times }, () => call('GET', path, null)));
  const ms = performance.now() - begun;
  isDone = true;
  await probing;
  for (const result of results) if (result.status === 'rejected') console.error(name, result.reason);
  const loop = await loopDelayOf(server.managementUrl);
  const { peak } = await memoryOf(server.pid());
  return [name, String(times), ms, loop.p99, loop.max, percentile(small, 0.99), Math.max(...small), peak];
}

const rows: (string | number)[][] = [];
const chosen = values.calls?.split(',');
for (const each of calls) {
  if (chosen && !chosen.includes(each[0])) continue;
  for (const times of [1, atOnce]) {
    rows.push(await measure(each, times));
    console.error(rows.at(-1)?.join(' '));
  }
}
console.log(`load ${await loadAverage()}; ${count} resources in each of two stacks\n`);
printTable(['call', 'at once', 'ms', 'loop p99', 'loop max', 'small call p99', 'small call max', 'peak MB'], rows);

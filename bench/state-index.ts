import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { loadAverage, median, printTable } from './support/measures.ts';
import { RawClient } from './support/raw-client.ts';
import { openStores, storeVersion } from './support/store-version.ts';

/**
 * The index of states: storing and indexing a version.
 * Measures indexing each new version of which a share of the resources has changed, storing that version, and indexing it
 * for the first time.
 * Usage: npm run bench state-index -- [--resources 100,10000] [--changed 0.01] [--rounds 10]
 */
const { values } = parseArgs({
  options: {
    resources: { type: 'string', default: '100,10000' },
    changed: { type: 'string', default: '0.01' },
    rounds: { type: 'string', default: '10' },
  },
});
const changed = Number(values.changed);
const rounds = Number(values.rounds);

/** A state of resources of about 1 kB; each version has other properties for a share of them. */
function stateOf(count: number, version: number): Buffer {
  const every = Math.max(1, Math.round(1 / changed));
  const resources = Array.from({ length: count }, (_, at) => {
    const edition = Math.floor((version + (at % every)) / every);
    const noise = createHash('sha512').update(`${at} ${edition}`).digest('hex');
    const inputs = {
      bucket: `assets-${at}`,
      tags: { team: 'platform', edition: noise },
      rules: [{ port: 80 }, { port: 443 }],
    };
    const urn = `urn:pulumi:prod::shop::aws:s3/bucket:Bucket::assets-${at}`;
    const outputs = { ...inputs, arn: `arn:aws:s3:::assets-${at}`, policy: noise };
    return { urn, custom: true, id: `assets-${at}`, type: 'aws:s3/bucket:Bucket', inputs, outputs };
  });
  return Buffer.from(JSON.stringify({ version: 3, deployment: { resources } }));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

await using server = await startOwnHoldfast();
await using context = await openStores(server.dataDir);
const client = new RawClient(server.url, server.token);
const rows: (string | number)[][] = [];
for (const count of values.resources.split(',').map(Number)) {
  const path = await client.createStack('dev-org', 'bench', `index-${count}`);
  const { id } = JSON.parse(await client.once('GET', path)) as { id: string };
  await storeVersion(context, id, stateOf(count, 0));
  const first = await timed(() => context.indexer.index(id));
  const stored: number[] = [];
  const indexed: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const text = stateOf(count, round);
    stored.push(await timed(() => storeVersion(context, id, text)));
    indexed.push(await timed(() => context.indexer.index(id)));
  }
  rows.push([
    String(count),
    stateOf(count, 0).length / 1e6,
    first,
    median(stored),
    median(indexed),
    median(indexed) / first,
  ]);
}
printTable(
  ['resources', 'MB', 'first index ms', 'store a version ms', 'index it ms', 'ratio to the first index'],
  rows,
);
console.log(`Load average ${await loadAverage()}; ${changed * 100} % changed, median of ${rounds}.`);

import { createHash, randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type AppContext, createContext } from '../src/shared/context.ts';
import { parseConfig } from '../src/shared/platform/config/config.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { createStackRepository } from '../src/shared/stacks/stack-repository.ts';
import { bytesOf } from '../src/shared/state/documents/byte-source.ts';
import { recordVersion } from '../src/shared/state/versions/record-version.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { loadAverage, median, printTable } from './support/figures.ts';
import { DataFolder } from './support/footprint.ts';
import { RawClient } from './support/raw-client.ts';

/**
 * Measures what the index of a state costs for each new version of which a share of the resources has changed, beside what storing that
 * version costs, and what indexing it for the first time costs.
 * Usage: node bench/state-index.ts [--resources 100,10000] [--changed 0.01] [--rounds 10]
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
const silent = createLogger({ level: 'silent' });

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

async function store(context: AppContext, id: string, text: Buffer): Promise<void> {
  const document = await context.documents.save(bytesOf(text));
  await context.db.inTransaction(async (tx) => {
    const stack = await createStackRepository(tx).lockById(id);
    if (!stack) throw new Error('The stack is gone');
    const record = { updateId: randomUUID(), kind: 'import', message: '', requestedBy: null } as const;
    await recordVersion(tx, stack, { ...record, state: { document, resourceCount: 0 } });
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

await using server = await startOwnHoldfast();
const folder = new DataFolder(server.dataDir);
const databaseUrl = await folder.databaseUrl();
const config = parseConfig({ HOLDFAST_DATABASE_URL: databaseUrl, HOLDFAST_DATA_DIR: server.dataDir });
await using context = await createContext(config, { databaseUrl, masterKeys: null }, { logger: silent });
const client = new RawClient(server.url, server.token);
const rows: (string | number)[][] = [];
for (const count of values.resources.split(',').map(Number)) {
  const path = await client.createStack('dev-org', 'bench', `index-${count}`);
  const { id } = JSON.parse(await client.once('GET', path)) as { id: string };
  await store(context, id, stateOf(count, 0));
  const first = await timed(() => context.indexer.index(id));
  const stored: number[] = [];
  const indexed: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const text = stateOf(count, round);
    stored.push(await timed(() => store(context, id, text)));
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

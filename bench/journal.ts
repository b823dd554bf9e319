import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, loopDelayOf, median, memoryOf, printTable, resetPeak } from './support/measures.ts';
import { RawClient, type Update } from './support/raw-client.ts';

/**
 * Journals: the server's cost per entry and per compaction, without the CLI.
 * Each resource takes two entries (begin, success). First complete updates of growing size: CPU per entry (including
 * snapshots and the final compaction; small updates are repeated), time of the complete call (the final compaction) and
 * event loop delay during it, memory, and storage before and after the journal is deleted. Then the last 1,000 entries of
 * updates of these sizes, one batch of each in turn so that all see the same load: the time per entry and its ratio to that
 * of the smallest update.
 * Usage: npm run bench journal -- [--entries 100,1000,10000,20000,50000] [--batch 100] [--rounds 5]
 */
const { values } = parseArgs({
  options: {
    entries: { type: 'string', default: '100,1000,10000,20000,50000' },
    batch: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
  },
});

const organization = 'dev-org';
const batch = Number(values.batch);
const sizes = values.entries.split(',').map(Number);
const sliceEntries = 1_000;

/** About 1.8 kB of state per resource, a tenth of it ids that do not compress. */
function entry(sequenceID: number): object {
  const operationID = Math.ceil(sequenceID / 2);
  const urn = `urn:pulumi:dev::bench::aws:ec2/instance:Instance::r${operationID}`;
  const common = { version: 1, sequenceID, operationID, removeOld: null, removeNew: null };
  const id = createHash('sha256').update(urn).digest('hex');
  const inputs = {
    ami: `ami-${id.slice(0, 17)}`,
    instanceType: 't3.medium',
    subnetId: `subnet-${id.slice(20, 37)}`,
    tags: { Name: `r${operationID}`, environment: 'production', owner: 'platform-team', 'managed-by': 'pulumi' },
    userData: '#!/bin/sh\nset -e\nyum install -y docker\nsystemctl enable --now docker\n'.repeat(6),
  };
  const resource = { urn, custom: true, type: 'aws:ec2/instance:Instance', inputs };
  if (sequenceID % 2 === 1) return { ...common, kind: 0, operation: { type: 'creating', resource } };
  const outputs = { ...inputs, id: `i-${id.slice(40, 57)}`, arn: `arn:aws:ec2:eu-west-1:1234:instance/${id}` };
  return { ...common, kind: 1, state: { ...resource, id: outputs.id, outputs } };
}

function bodyOf(from: number, to: number): Buffer {
  const entries = Array.from({ length: to - from }, (_, at) => entry(from + at));
  return gzipSync(JSON.stringify({ entries }), { level: 1 });
}

class Journal {
  readonly #client: RawClient;
  readonly stack: string;
  readonly update: Update;
  #next = 1;

  private constructor(client: RawClient, stack: string, update: Update) {
    this.#client = client;
    this.stack = stack;
    this.update = update;
  }

  static async begin(client: RawClient, name: string): Promise<Journal> {
    const stack = await client.createStack(organization, 'bench', name);
    return new Journal(client, stack, await client.startUpdate(stack, { journal: true }));
  }

  /** Appends entries up to `end` in batches. Returns how long each batch took, in ms. */
  async append(end: number): Promise<number[]> {
    const latencies: number[] = [];
    while (this.#next <= end) {
      const to = Math.min(this.#next + batch, end + 1);
      const body = bodyOf(this.#next, to);
      const sent = performance.now();
      await this.#client.call('PATCH', `${this.update.path}/journalentries`, body, {
        auth: this.update.lease,
        gzip: 'done',
      });
      latencies.push(performance.now() - sent);
      this.#next = to;
    }
    return latencies;
  }
}

/** Returns the CPU time per entry in µs, over enough updates for a stable result. */
async function cpuOf(server: OwnHoldfastServer, client: RawClient, count: number): Promise<number> {
  const updates = Math.min(10, Math.ceil(20_000 / count));
  const before = await cpuSecondsOf(server.pid());
  for (let at = 0; at < updates; at++) {
    const journal = await Journal.begin(client, `cpu-${count}-${at}-${Date.now()}`);
    await journal.append(count);
    await client.complete(journal.update);
  }
  return (((await cpuSecondsOf(server.pid())) - before) / updates / count) * 1e6;
}

/** Journals are deleted, and blobs that nothing refers to are swept. */
async function untilCleanedUp(folder: DataFolder): Promise<void> {
  const isClean = async (): Promise<boolean> => {
    // Journals that have been compacted are kept for an hour.
    await folder.query("update journals set folded_at = 'epoch' where folded_at > 'epoch'");
    return (await folder.leftovers()) === 0;
  };
  await until(isClean, 'the server has cleaned up', { timeoutMs: 600_000, everyMs: 200 });
}

async function wholeUpdate(server: OwnHoldfastServer, client: RawClient, count: number): Promise<(string | number)[]> {
  const folder = new DataFolder(server.dataDir);
  const cpu = await cpuOf(server, client, count);
  await untilCleanedUp(folder);
  const journal = await Journal.begin(client, `whole-${count}-${Date.now()}`);
  const start = await folder.footprint();
  const pid = server.pid();
  const { now: memoryBefore } = await memoryOf(pid);
  await journal.append(count);
  const appended = await folder.footprint();
  await resetPeak(pid);
  await loopDelayOf(server.managementUrl);
  const cpuBefore = await cpuSecondsOf(pid);
  const completing = performance.now();
  await client.complete(journal.update);
  const completed = performance.now() - completing;
  const cpuOfComplete = (await cpuSecondsOf(pid)) - cpuBefore;
  const delay = await loopDelayOf(server.managementUrl);
  const { peak } = await memoryOf(pid);
  const exporting = performance.now();
  const state = await client.export(journal.stack);
  const exported = performance.now() - exporting;
  await untilCleanedUp(folder);
  const compacted = await folder.footprint();
  const grown = (end: typeof start): number => (end.tables + end.blobs - start.tables - start.blobs) / 1e6;
  return [
    String(count),
    cpu,
    completed,
    cpuOfComplete * 1000,
    delay.max,
    exported,
    memoryBefore,
    peak,
    Buffer.byteLength(state) / 1e6,
    grown(appended),
    grown(compacted),
  ];
}

/** Returns the times of the batches at the end of updates of each size, measured in turn. */
async function slices(client: RawClient, rounds: number): Promise<Map<number, number[]>> {
  const latencies = new Map<number, number[]>(sizes.filter((size) => size >= sliceEntries).map((size) => [size, []]));
  for (let round = 0; round < rounds; round++) {
    const journals: [number, Journal][] = [];
    for (const size of latencies.keys()) {
      const journal = await Journal.begin(client, `slice-${size}-${round}-${Date.now()}`);
      await journal.append(size - sliceEntries);
      journals.push([size, journal]);
    }
    for (let done = batch; done <= sliceEntries; done += batch) {
      for (const [size, journal] of journals) {
        latencies.get(size)?.push(...(await journal.append(size - sliceEntries + done)));
      }
      journals.reverse();
    }
    for (const [, { update }] of journals) await client.complete(update);
  }
  return latencies;
}

await using server = await startOwnHoldfast({
  ...tuned({ sweepSeconds: 1, eventArchiveDelaySeconds: 2 }),
  HOLDFAST_BLOB_RETENTION_SECONDS: '5',
});
const client = new RawClient(server.url, server.token);
// Only warms up the server.
await wholeUpdate(server, client, 2_000);
const rows: (string | number)[][] = [];
for (const size of sizes) rows.push(await wholeUpdate(server, client, size));
console.log(`Load ${await loadAverage()}`);
printTable(
  [
    'entries',
    'server CPU µs/entry',
    'complete ms',
    'its CPU ms',
    'event loop max ms',
    'export ms',
    'RSS MB before',
    'RSS MB peak in complete',
    'state MB',
    'stored MB with journal',
    'stored MB after',
  ],
  rows,
);
const latencies = await slices(client, Number(values.rounds));
const base = latencies.get(Math.min(...latencies.keys())) ?? [];
const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
console.log(`\nThe last ${sliceEntries} entries, in turn, ${base.length} batches each; load ${await loadAverage()}`);
printTable(
  ['entries', 'µs/entry p50', 'µs/entry mean', 'p50 ratio', 'mean ratio'],
  [...latencies].map(([size, list]) => [
    String(size),
    (median(list) / batch) * 1000,
    (mean(list) / batch) * 1000,
    median(list) / median(base),
    mean(list) / mean(base),
  ]),
);

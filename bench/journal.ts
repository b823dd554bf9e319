import { parseArgs } from 'node:util';
import { startOwnHoldfast } from '../e2e/support/holdfast-server.ts';
import { median, printTable } from './support/figures.ts';
import { RawClient } from './support/raw-client.ts';

/**
 * Cost of journaling on the server's side, without the CLI: append time per entry, time of complete (the last fold), and
 * bytes kept, for updates of growing size. Each resource takes two entries (begin, success).
 * Usage: node bench/journal.ts [--entries 100,1000,10000,50000] [--batch 100]
 */
const { values } = parseArgs({
  options: { entries: { type: 'string', default: '100,1000,10000,50000' }, batch: { type: 'string', default: '100' } },
});

const organization = 'dev-org';

function entry(sequenceID: number): object {
  const operationID = Math.ceil(sequenceID / 2);
  const urn = `urn:pulumi:dev::bench::pulumi:index:Stash::r${operationID}`;
  const common = { version: 1, sequenceID, operationID, removeOld: null, removeNew: null };
  if (sequenceID % 2 === 1) return { ...common, kind: 0 };
  const text = `value of resource ${operationID} `.repeat(40);
  return {
    ...common,
    kind: 1,
    state: { urn, custom: false, type: 'pulumi:index:Stash', inputs: { input: text }, outputs: { output: text } },
  };
}

await using server = await startOwnHoldfast();
const client = new RawClient(server.url, server.token);
const rows: (string | number)[][] = [];
for (const [index, count] of [200, ...values.entries.split(',').map(Number)].entries()) {
  const stack = await client.createStack(organization, 'bench', `journal-${index}-${count}`);
  const update = await client.startUpdate(stack, { journal: true });
  const batch = Number(values.batch);
  const latencies: number[] = [];
  const began = performance.now();
  for (let from = 1; from <= count; from += batch) {
    const entries = Array.from({ length: Math.min(batch, count - from + 1) }, (_, at) => entry(from + at));
    const body = Buffer.from(JSON.stringify({ entries }));
    const sent = performance.now();
    await client.call('PATCH', `${update.path}/journalentries`, body, { auth: update.lease, gzip: true });
    latencies.push(performance.now() - sent);
  }
  const appended = performance.now() - began;
  const completing = performance.now();
  await client.complete(update);
  const completed = performance.now() - completing;
  const exporting = performance.now();
  const state = await client.export(stack);
  // The first, short run only warms the server up.
  if (index === 0) continue;
  const total = latencies.reduce((sum, value) => sum + value, 0);
  rows.push([
    String(count),
    (total / count) * 1000,
    median(latencies),
    appended / 1000,
    completed,
    performance.now() - exporting,
    state.length / 1e6,
  ]);
}
printTable(
  ['entries', 'append µs/entry', 'batch p50 ms', 'all appends s', 'complete ms', 'export ms', 'state MB'],
  rows,
);

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { holdfastProgram } from '../testkit/holdfast-program.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { loadAverage, percentile, printTable } from './support/measures.ts';
import { deploymentOf, RawClient } from './support/raw-client.ts';

/**
 * Creates, verifies and restores backups of an embedded server under writers.
 * Prints times, rates by stored bytes, and the latency of the writers without and during each step.
 * Usage: npm run bench backup -- [--stacks 2000] [--bytes 100000] [--writers 8] [--writer-bytes 100000]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '2000' },
    bytes: { type: 'string', default: '100000' },
    writers: { type: 'string', default: '8' },
    'writer-bytes': { type: 'string' },
  },
});
const [stacks, bytes, writers] = [Number(values.stacks), Number(values.bytes), Number(values.writers)];
const writerBytes = Number(values['writer-bytes'] ?? bytes);
const seedersAtOnce = 8;
const idleMs = 15_000;

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-backup-'));
await using server = await startOwnHoldfast();
const client = new RawClient(server.url, server.token);

async function seed(): Promise<void> {
  let next = 0;
  const seedNext = async (): Promise<void> => {
    while (next < stacks) {
      const number = next++;
      const stack = await client.createStack(server.organization, 'bench', `stack-${number}`);
      await client.call('POST', `${stack}/import`, deploymentOf(bytes, number + 1));
    }
  };
  await Promise.all(Array.from({ length: seedersAtOnce }, seedNext));
}

/** Returns how long each import took, in ms. */
async function underWriters(work: () => Promise<void>): Promise<{ seconds: number; writes: number[] }> {
  const writes: number[] = [];
  let isDone = false;
  const write = async (writer: number): Promise<void> => {
    for (let number = 0; !isDone; number++) {
      const began = performance.now();
      await client.call(
        'POST',
        `/api/stacks/${server.organization}/writers/stack-${writer}/import`,
        deploymentOf(writerBytes, 100_000 * (writer + 1) + number),
      );
      writes.push(performance.now() - began);
    }
  };
  const writing = Array.from({ length: writers }, (_, writer) => write(writer));
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1000;
  isDone = true;
  await Promise.all(writing);
  return { seconds, writes };
}

async function backup(dataDir: string, ...words: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: home, TMPDIR: tmpdir(), HOLDFAST_DATA_DIR: dataDir };
  const { stdout } = await promisify(execFile)(process.execPath, [holdfastProgram, 'backup', ...words, '--json'], {
    env,
    maxBuffer: 256 * 1024 * 1024,
  });
  return stdout;
}

console.log(`Seeding ${stacks} stacks of ${bytes} bytes`);
const seedingBegan = performance.now();
await seed();
console.log(`Seeded in ${((performance.now() - seedingBegan) / 1000).toFixed(0)} s`);
for (let writer = 0; writer < writers; writer++)
  await client.createStack(server.organization, 'writers', `stack-${writer}`);
const identity = await generateX25519Identity();
const identityFile = path.join(home, 'identity.txt');
writeFileSync(identityFile, identity);
const recipient = await identityToRecipient(identity);
const [plain, encrypted] = [path.join(home, 'plain'), path.join(home, 'encrypted')];
const nothing = path.join(home, 'nothing');

let stored = 0;
const create = async (location: string, ...options: string[]): Promise<void> => {
  ({ bytes: stored } = JSON.parse(await backup(server.dataDir, 'create', '--to', location, ...options)));
};
const steps: Record<string, () => Promise<unknown>> = {
  'no backup': () => sleep(idleMs),
  'create, the first': () => create(plain),
  'create, the next': () => create(plain),
  verify: () => backup(nothing, 'verify', '--from', plain),
  restore: () => backup(path.join(home, 'restored'), 'restore', '--from', plain),
  'create, encrypted': () => create(encrypted, '--recipient', recipient),
  'verify, encrypted': () => backup(nothing, 'verify', '--from', encrypted, '--identity', identityFile),
};
const rows: (string | number)[][] = [];
for (const [name, step] of Object.entries(steps)) {
  const load = await loadAverage();
  const { seconds, writes } = await underWriters(async () => void (await step()));
  const rates = stored === 0 ? ['', ''] : [stored / 1e6 / seconds, stacks / seconds];
  rows.push([name, seconds, ...rates, percentile(writes, 0.5), percentile(writes, 0.99), load]);
  console.log(`${name}: ${seconds.toFixed(0)} s, ${writes.length} writes`);
}
console.log(`\n${(stored / 1e6).toFixed(0)} MB stored, ${writers} writers of ${writerBytes} bytes\n`);
printTable(['step', 's', 'MB/s', 'stacks/s', 'write p50 ms', 'p99 ms', 'load before'], rows);
rmSync(home, { recursive: true, force: true });

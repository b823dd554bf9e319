import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { type Download, download } from './support/download.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, median, memoryOf, percentile, printTable, resetPeak } from './support/measures.ts';
import { RawClient } from './support/raw-client.ts';
import { openStores, storeVersion } from './support/store-version.ts';

/**
 * The history of a stack: its size, encoding and exports.
 * The state changes a little with each version: size as whole documents and encoded, the cost of encoding, and how long an
 * export of any version takes before and after. Then the memory for encoding a large state.
 * Usage: npm run bench versions -- [--versions 1000] [--megabytes 5] [--changed 0.01] [--large 100] [--opens 60]
 */
const { values } = parseArgs({
  options: {
    versions: { type: 'string', default: '1000' },
    megabytes: { type: 'string', default: '5' },
    changed: { type: 'string', default: '0.01' },
    large: { type: 'string', default: '100' },
    opens: { type: 'string', default: '60' },
  },
});

const organization = 'dev-org';
/** The CLI accepts gzip. */
const encodings = ['identity', 'gzip'];
const changed = Number(values.changed);
const mega = 1e6;

/** Each version has other outputs for some of the resources, chosen at random. */
class ChangingState {
  readonly #resources: string[] = [];
  #random = 1;
  #version = 1;

  constructor(bytes: number) {
    for (let size = 0; size < bytes; size += this.#resources.at(-1)?.length ?? 0) {
      this.#resources.push(this.#resource(this.#resources.length));
    }
  }

  /** The text of the current version; the next call returns that of the next one. */
  next(): Buffer {
    const head = `{"version":3,"deployment":{"manifest":{"time":"${new Date(1.7e12 + this.#version * 1e6).toISOString()}","magic":"","version":"v3.200.0"},"resources":[`;
    const text = Buffer.from(`${head}${this.#resources.join(',')}]}}`);
    this.#version++;
    for (let count = Math.ceil(this.#resources.length * changed); count > 0; count--) {
      this.#random = (Math.imul(this.#random, 1_103_515_245) + 12_345) >>> 0;
      const at = this.#random % this.#resources.length;
      this.#resources[at] = this.#resource(at);
    }
    return text;
  }

  /** About 1 kB: 100 bytes of inputs and 225 bytes of outputs do not compress. */
  #resource(at: number): string {
    const digest = (name: string, bytes: number): Buffer =>
      Buffer.concat([0, 1, 2, 3].map((part) => createHash('sha512').update(`${at} ${name} ${part}`).digest())).subarray(
        0,
        bytes,
      );
    const inputs = {
      bucket: `assets-${at}`,
      tags: { team: 'platform', environment: 'production' },
      policy: digest('in', 100).toString('hex'),
    };
    return JSON.stringify({
      urn: `urn:pulumi:prod::shop::aws:s3/bucket:Bucket::assets-${at}`,
      custom: true,
      id: `assets-${at}-${digest('id', 4).toString('hex')}`,
      type: 'aws:s3/bucket:Bucket',
      inputs,
      outputs: {
        ...inputs,
        arn: `arn:aws:s3:::assets-${at}`,
        etag: digest(`out ${this.#version}`, 225).toString('base64'),
      },
      parent: 'urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod',
      provider: 'urn:pulumi:prod::shop::pulumi:providers:aws::default_6_0_0::04da6b54-80e4-46f7-96ec-b56ff0331ba9',
      propertyDependencies: { bucket: [], tags: [], policy: [] },
    });
  }
}

/** Exports of several versions, in ms: until the first byte, until the last, and the CPU time of the server for each. */
interface Opens {
  readonly firsts: readonly number[];
  readonly times: readonly number[];
  readonly cpuMs: number;
}

interface Stored {
  readonly versions: number;
  /** Bytes of documents in rows and blobs that are in use. */
  readonly bytes: number;
}

async function storedOf(folder: DataFolder): Promise<Stored> {
  const [row] = await folder.query(
    `select count(*)::int as versions, sum(stored_bytes)::float8 as bytes from checkpoints`,
  );
  return row as unknown as Stored;
}

/** Adds versions to a stack as an import does, without HTTP, and returns the SHA-256 of each. */
async function addVersions(
  server: OwnHoldfastServer,
  stack: string,
  state: ChangingState,
  count: number,
): Promise<string[]> {
  const { id } = JSON.parse(await client.once('GET', stack)) as { id: string };
  await using context = await openStores(server.dataDir);
  const digests: string[] = [];
  for (let version = 1; version <= count; version++) digests.push(await storeVersion(context, id, state.next()));
  return digests;
}

/** Spread over all versions. Checks the bytes of those that are not encoded. */
async function openSome(
  server: OwnHoldfastServer,
  stack: string,
  digests: readonly string[],
  encoding = 'identity',
): Promise<Download[]> {
  const opened: Download[] = [];
  const count = Math.min(Number(values.opens), digests.length - 1);
  for (let at = 0; at < count; at++) {
    const index = Math.floor((at * (digests.length - 1)) / count);
    const each = await download(`${server.url}${stack}/export/${index + 1}`, server.token, encoding);
    if (each.digest !== null && each.digest !== digests[index]) throw new Error(`Version ${index + 1} is wrong`);
    opened.push(each);
  }
  return opened;
}

/** All versions, and the cost. */
async function encode(server: OwnHoldfastServer, folder: DataFolder) {
  await resetPeak(server.pid());
  const before = await memoryOf(server.pid());
  const [cpu, begun] = [await cpuSecondsOf(server.pid()), performance.now()];
  await folder.query("update checkpoints set encode_at = 'epoch' where codec <> 'chunks'");
  const isDone = async (): Promise<boolean> => {
    const [row] = await folder.query('select count(*)::int as due from checkpoints where encode_at <= now()');
    return row?.['due'] === 0;
  };
  await until(isDone, 'all versions are encoded', { timeoutMs: 3_600_000, everyMs: 1_000 });
  return {
    seconds: (performance.now() - begun) / 1000,
    cpuSeconds: (await cpuSecondsOf(server.pid())) - cpu,
    idleMemory: before.now,
    peakMemory: (await memoryOf(server.pid())).peak,
  };
}

function changeOf<T>(before: T, after: T, value: (of: T) => number): string {
  return `${value(before).toFixed(1)} → ${value(after).toFixed(1)}`;
}

await using server = await startOwnHoldfast({
  ...tuned({ sweepSeconds: 1, eventArchiveDelaySeconds: 2 }),
  HOLDFAST_BACKGROUND_BYTES_PER_SECOND: '250000000000',
});
const client = new RawClient(server.url, server.token);
const folder = new DataFolder(server.dataDir);
console.log(`load ${await loadAverage()}`);

const count = Number(values.versions);
const stack = await client.createStack(organization, 'bench', 'changing');
const digests = await addVersions(server, stack, new ChangingState(Number(values.megabytes) * mega), count);
console.log(`${count} versions stored, load ${await loadAverage()}`);
const whole = await storedOf(folder);
const opensOf = async (encoding: string): Promise<Opens> => {
  const cpu = await cpuSecondsOf(server.pid());
  const opened = await openSome(server, stack, digests, encoding);
  return {
    firsts: opened.map(({ firstMs }) => firstMs),
    times: opened.map(({ totalMs }) => totalMs),
    cpuMs: ((await cpuSecondsOf(server.pid())) - cpu) * (1000 / opened.length),
  };
};
const wholeOpens = new Map<string, Opens>();
for (const encoding of encodings) wholeOpens.set(encoding, await opensOf(encoding));
const cost = await encode(server, folder);
const encoded = await storedOf(folder);
const opens = new Map<string, Opens>();
for (const encoding of encodings) opens.set(encoding, await opensOf(encoding));
const [depths] = await folder.query(
  'select max(depth)::int as deepest, count(*)::int as chunks, count(*) filter (where depth = 0)::int as alone from version_chunks',
);
const [rows] = await folder.query(
  "select (pg_total_relation_size('version_chunks') + pg_total_relation_size('checkpoint_chunks'))::float8 as bytes",
);
printTable(
  ['', 'whole', 'encoded'],
  [
    [`bytes of ${whole.versions} versions, MB`, whole.bytes / mega, encoded.bytes / mega],
    ...encodings.flatMap((encoding) => {
      const both = [wholeOpens, opens].map((each) => each.get(encoding) as Opens);
      const row = (label: string, value: (of: Opens) => number) => [`${encoding}: ${label}`, ...both.map(value)];
      return [
        row('first byte of any version, p50, ms', ({ firsts }) => median(firsts)),
        row('p95, ms', ({ firsts }) => percentile(firsts, 0.95)),
        row('its whole export, p50, ms', ({ times }) => median(times)),
        row('p95, ms', ({ times }) => percentile(times, 0.95)),
        row('CPU of the server for each, ms', ({ cpuMs }) => cpuMs),
      ];
    }),
  ],
);
printTable(
  ['encoding', ''],
  [
    ['wall, s', cost.seconds],
    ['CPU per version, ms', (1000 * cost.cpuSeconds) / count],
    ['RSS before, peak, MB', `${cost.idleMemory.toFixed(0)}, ${cost.peakMemory.toFixed(0)}`],
    ['chunks, compressed alone, deepest chain', `${depths?.['chunks']}, ${depths?.['alone']}, ${depths?.['deepest']}`],
    ['tables of chunks with indexes, MB', (rows?.['bytes'] as number) / mega],
  ],
);

const largeBytes = Number(values.large) * mega;
if (largeBytes > 0) {
  const largeStack = await client.createStack(organization, 'bench', 'large');
  const largeDigests = await addVersions(server, largeStack, new ChangingState(largeBytes), 4);
  await server.stop();
  await server.restart();
  const largeBefore = await storedOf(folder);
  const opened = async (): Promise<{ times: readonly number[]; cpuSeconds: number; peak: number }> => {
    await resetPeak(server.pid());
    const cpu = await cpuSecondsOf(server.pid());
    const times = (await openSome(server, largeStack, largeDigests)).map(({ totalMs }) => totalMs);
    const cpuSeconds = ((await cpuSecondsOf(server.pid())) - cpu) / times.length;
    return { times, cpuSeconds, peak: (await memoryOf(server.pid())).peak };
  };
  const largeWhole = await opened();
  const largeCost = await encode(server, folder);
  const largeAfter = await storedOf(folder);
  const largeOpens = await opened();
  printTable(
    [`${values.large} MB, 3 versions of 4 encoded`, ''],
    [
      ['bytes before, after, MB', `${(largeBefore.bytes / mega).toFixed(1)}, ${(largeAfter.bytes / mega).toFixed(1)}`],
      ['CPU per version, s', largeCost.cpuSeconds / 3],
      ['RSS before, peak, MB', `${largeCost.idleMemory.toFixed(0)}, ${largeCost.peakMemory.toFixed(0)}`],
      ['export, whole → encoded, longest, ms', changeOf(largeWhole, largeOpens, ({ times }) => Math.max(...times))],
      ['CPU per export, s', changeOf(largeWhole, largeOpens, ({ cpuSeconds }) => cpuSeconds)],
      ['RSS of exports, peak, MB', changeOf(largeWhole, largeOpens, ({ peak }) => peak)],
    ],
  );
}
console.log(`load ${await loadAverage()}`);

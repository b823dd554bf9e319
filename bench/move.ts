import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { openFolder } from '../src/shared/platform/blobs/open-folder.ts';
import { type DiyStack, writeDiyFolder } from '../test/support/diy-folder.ts';
import { runAdmin } from '../testkit/admin-command.ts';
import { holdfastProgram } from '../testkit/holdfast-program.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { startS3Server } from '../testkit/s3-server.ts';
import { DataFolder } from './support/footprint.ts';
import { cpuSecondsOf, loadAverage, memoryOf, printTable } from './support/measures.ts';

/**
 * Imports stacks with their history from a folder of the CLI, from the same files on versitygw, and from another server.
 * Prints how long each import and its verification take, the CPU time of the command and of a source server, and the peak memory of the command. Ends with an error if a version is missing
 * or differs.
 * Usage: npm run bench move -- [--stacks 1000] [--versions 20] [--resources 10] [--filler 500] [--parallel 4] [--from folder,s3,service]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '1000' },
    versions: { type: 'string', default: '20' },
    resources: { type: 'string', default: '10' },
    filler: { type: 'string', default: '500' },
    parallel: { type: 'string', default: '4' },
    from: { type: 'string', default: 'folder,s3,service' },
  },
});
const [stacks, versions] = [Number(values.stacks), Number(values.versions)];
const sources = values.from.split(',');
const uploadsAtOnce = 16;
const sampleMs = 200;

interface Ended {
  readonly output: string;
  readonly seconds: number;
  /** CPU time, without Postgres. */
  readonly cpu: number;
  readonly peak: number;
}

/** Runs `holdfast` on the data of a server. Throws if it fails. */
async function run(server: OwnHoldfastServer, env: NodeJS.ProcessEnv, ...words: string[]): Promise<Ended> {
  const began = performance.now();
  const child = spawn(process.execPath, [holdfastProgram, ...words], {
    env: { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: server.dataDir, ...env },
    stdio: 'pipe',
  });
  let [cpu, peak] = [0, 0];
  const timer = setInterval(() => {
    // It may have ended.
    const pid = child.pid as number;
    void Promise.all([memoryOf(pid), cpuSecondsOf(pid)]).then(
      ([memory, seconds]) => {
        peak = Math.max(peak, memory.peak || 0);
        cpu = seconds;
      },
      () => undefined,
    );
  }, sampleMs);
  const [printed, complaints, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]).finally(() => clearInterval(timer));
  if (code !== 0)
    throw new Error(`holdfast ${words.join(' ')} exited with ${code}:\n${printed}${complaints.slice(-2000)}`);
  return { output: printed, seconds: (performance.now() - began) / 1000, cpu, peak };
}

/** Copies a folder to a bucket. */
async function upload(directory: string, place: string): Promise<number> {
  const folder = await openFolder(place, {
    ...{ region: 'us-east-1', endpoint: null, forcePathStyle: true, requestTimeoutMs: 30_000 },
  });
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
  let next = 0;
  const uploadNext = async (): Promise<void> => {
    for (let file = files[next++]; file !== undefined; file = files[next++]) {
      const name = path.join(file.parentPath, file.name);
      const bytes = await readFile(name);
      const body = async function* (): AsyncGenerator<Buffer> {
        yield bytes;
      };
      await folder.write(path.relative(directory, name), body());
    }
  };
  await Promise.all(Array.from({ length: uploadsAtOnce }, uploadNext));
  await folder.close();
  return files.length;
}

/** `whole` stacks have exactly the versions from 1 on. */
async function countOf(server: OwnHoldfastServer, organization: string): Promise<{ versions: number; whole: number }> {
  const [row] = await new DataFolder(server.dataDir).query(`
    select coalesce(sum(count), 0)::int as versions, count(*) filter (where count = ${versions} and first = 1 and last = ${versions})::int as whole
    from (select count(*)::int as count, min(u.stack_version) as first, max(u.stack_version) as last
      from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
      where o.name = '${organization}' and u.stack_version is not null and u.checkpoint_id is not null group by s.id) each`);
  return row as unknown as { versions: number; whole: number };
}

const rows: (readonly (string | number)[])[] = [];
const columns = [
  ...['source', 'import, s', 'CPU, s', 'of the source', 'peak, MB'],
  ...['verify, s', 'CPU, s', 'of the source', 'peak, MB', 'load before'],
];

/** Imports into a new organization, verifies, and adds a row to the table. */
async function measure(
  server: OwnHoldfastServer,
  name: string,
  { env = {}, source = null }: { readonly env?: NodeJS.ProcessEnv; readonly source?: OwnHoldfastServer | null },
  ...from: string[]
): Promise<void> {
  const load = await loadAverage();
  const sourceCpu = async (): Promise<number> => (source === null ? 0 : cpuSecondsOf(source.pid()));
  await runAdmin(server, 'create-organization', name);
  await runAdmin(server, 'add-member', 'ada', '--organization', name);
  const words = ['import', ...from, '--organization', name, '--parallel', values.parallel];
  const before = await sourceCpu();
  const imported = await run(server, env, ...words, '--apply');
  const between = await sourceCpu();
  console.log(`${name}: imported in ${imported.seconds.toFixed(0)} s`);
  const count = await countOf(server, name);
  if (count.versions !== stacks * versions || count.whole !== stacks)
    throw new Error(
      `${name}: ${count.versions} versions are here, ${count.whole} stacks are whole\n${imported.output}`,
    );
  const verified = await run(server, env, ...words, '--verify');
  if (!verified.output.includes('no differences')) throw new Error(verified.output);
  const after = await sourceCpu();
  rows.push([
    ...[name, imported.seconds, imported.cpu, between - before, imported.peak.toFixed(0)],
    ...[verified.seconds, verified.cpu, after - between, verified.peak.toFixed(0), load],
  ]);
  printTable(columns, rows.slice(-1));
}

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-move-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const directory = path.join(home, 'source');
const made: DiyStack[] = Array.from({ length: stacks }, (_, at) => ({
  ...{ project: `project-${at % 10}`, stack: `stack-${at}`, versions, resources: Number(values.resources) },
  ...{ filler: 'x'.repeat(Number(values.filler)), tags: { team: `team-${at % 7}` } },
}));
for (const each of made) await writeDiyFolder(directory, [each]);

await using server = await startOwnHoldfast();
console.log(`${stacks} stacks with ${versions} versions, load ${await loadAverage()}`);
if (sources.includes('folder')) await measure(server, 'folder', {}, '--from', `file://${directory}`);
if (sources.includes('s3')) {
  const s3 = await startS3Server('versitygw', home);
  try {
    const access = { AWS_ACCESS_KEY_ID: s3.accessKeyId, AWS_SECRET_ACCESS_KEY: s3.secretAccessKey };
    Object.assign(process.env, access);
    await s3.createBucket('source');
    const place = `s3://source/stacks?endpoint=${s3.endpoint}&s3ForcePathStyle=true&region=us-east-1`;
    console.log(`${await upload(directory, place)} files are in the bucket`);
    await measure(server, 's3', { env: access }, '--from', place);
  } finally {
    await s3.stop();
  }
}
if (sources.includes('service')) {
  // What it lists came from the folder.
  const source = sources.find((each) => each !== 'service');
  if (source === undefined) throw new Error('--from service needs folder or s3 before it');
  await using target = await startOwnHoldfast();
  const access = { PULUMI_ACCESS_TOKEN: server.token, HOLDFAST_PUBLIC_URL: target.url };
  await measure(
    target,
    'service',
    { env: access, source: server },
    '--from',
    server.url,
    '--source-organization',
    source,
  );
}
printTable(columns, rows);

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { upgradeCluster } from '../../src/shared/backup/upgrade-cluster.ts';
import { claimDataDir } from '../../src/shared/platform/config/data-dir.ts';
import { readRunningUrl, startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { findOldBinaries } from '../../src/shared/platform/db/postgres-major.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { runHoldfast } from '../support/admin.ts';
import { loadRows } from '../support/baseline.ts';

// The database of the baseline, with rows of every kind of work, in files of an earlier Postgres than that of this release.

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-upgrade-'));
const logger = createLogger({ level: 'silent' });
let oldPostgres: string;
let template: string;
let rows: Record<string, number>;

const env = (dataDir: string): NodeJS.ProcessEnv => ({ PATH: process.env['PATH'], HOLDFAST_DATA_DIR: dataDir });
const upgrade = (dataDir: string, ...args: string[]) =>
  runHoldfast(env(dataDir), 'upgrade-database', ...(args.length > 0 ? args : ['--old-postgres', oldPostgres]));

/** Starts Postgres on the folder, by default that of this release, and counts the rows of all tables. */
async function countRows(
  directory: string,
  binaries?: ReturnType<typeof findOldBinaries>,
): Promise<Record<string, number>> {
  const postgres = await startEmbeddedPostgres(directory, logger, binaries ? { binaries } : {});
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(relname) as name from pg_class where relkind in ('r', 'p') and not relispartition
       and relnamespace = 'public'::regnamespace order by 1`,
    );
    const counts: Record<string, number> = {};
    for (const { name } of tables)
      counts[name] = Number((await client.query(`select count(*) as count from ${name}`)).rows[0].count);
    return counts;
  } finally {
    await client.end();
    await postgres.stop();
  }
}

/** As `readRunningUrl`, at once. */
function runningUrl(directory: string): string {
  const port = readFileSync(path.join(directory, 'cluster', 'postmaster.pid'), 'utf8').split('\n')[3];
  const password = readFileSync(path.join(directory, 'password'), 'utf8').trim();
  return `postgres://holdfast:${password}@127.0.0.1:${port}/postgres`;
}

/** A data directory of its own, as the earlier release left it. */
function oldDataDir(name: string): string {
  const dataDir = path.join(home, name);
  // With its owner, who runs Postgres.
  execFileSync('cp', ['-a', template, dataDir]);
  return dataDir;
}

beforeAll(async () => {
  oldPostgres = (await ensureToolchain({ only: ['postgres-17'] }))['postgres-17'];
  template = path.join(home, 'template');
  const binaries = findOldBinaries(17, oldPostgres);
  const postgres = await startEmbeddedPostgres(path.join(template, 'postgres'), logger, { binaries });
  await migrate({ url: postgres.url, connectMs: 30_000, waitMs: 0, logger });
  await loadRows(postgres.url);
  await postgres.stop();
  rows = await countRows(path.join(template, 'postgres'), binaries);
}, 240_000);
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('a server on files of an earlier Postgres refuses and names the command, which keeps them and copies every row', async () => {
  expect(Object.values(rows).reduce((sum, count) => sum + count)).toBeGreaterThan(100);
  const dataDir = oldDataDir('whole');
  const server = await runHoldfast(env(dataDir), 'server');
  expect([server.code, server.stdout + server.stderr]).toEqual([
    1,
    expect.stringContaining('run `holdfast upgrade-database`'),
  ]);
  const { code, stdout, stderr } = await upgrade(dataDir);
  expect([code, stdout || stderr]).toEqual([0, expect.stringContaining('cluster-17')]);
  expect(await countRows(path.join(dataDir, 'postgres'))).toEqual(rows);
  expect(readdirSync(path.join(dataDir, 'postgres')).sort()).toEqual(['cluster', 'cluster-17', 'password']);
  expect((await upgrade(dataDir)).stdout).toContain("already uses this release's Postgres");
  // The earlier release still starts on what was kept.
  rmSync(path.join(dataDir, 'postgres', 'cluster'), { recursive: true });
  const password = readFileSync(path.join(dataDir, 'postgres', 'password'), 'utf8');
  await expect(startEmbeddedPostgres(path.join(dataDir, 'postgres'), logger)).rejects.toThrow(
    'cluster-17 is beside it',
  );
  expect(readFileSync(path.join(dataDir, 'postgres', 'password'), 'utf8')).toBe(password);
  renameSync(path.join(dataDir, 'postgres', 'cluster-17'), path.join(dataDir, 'postgres', 'cluster'));
  expect(await countRows(path.join(dataDir, 'postgres'), findOldBinaries(17, oldPostgres))).toEqual(rows);
}, 240_000);

test('an upgrade that is killed at any step leaves the old files or the complete new ones', async () => {
  const dataDir = oldDataDir('killed');
  const postgres = path.join(dataDir, 'postgres');
  for (const step of ['creating a cluster', 'Copying table updates', 'Copied and counted', 'putting it in place']) {
    const child = spawn(process.execPath, [holdfastProgram, 'upgrade-database', '--old-postgres', oldPostgres], {
      env: env(dataDir),
    });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes(step)) child.kill('SIGKILL');
    });
    await new Promise((resolve) => child.once('close', resolve));
    expect(output).toContain(step);
    expect(readdirSync(postgres).filter((name) => name === 'cluster' || name === 'cluster.upgraded')).not.toEqual([]);
    if (existsSync(path.join(postgres, 'cluster-17'))) break;
  }
  await upgrade(dataDir);
  expect(await countRows(postgres)).toEqual(rows);

  // Killed between the two renames, which is too short to hit: the next start of any kind does the second.
  renameSync(path.join(postgres, 'cluster'), path.join(postgres, 'cluster.upgraded'));
  expect(await countRows(postgres)).toEqual(rows);
  expect(readdirSync(postgres)).toContain('cluster');
}, 240_000);

test('an upgrade that fails or is stopped leaves no copy and no process, and meanwhile the old database takes no writes', async () => {
  const dataDir = oldDataDir('stopped');
  const postgres = path.join(dataDir, 'postgres');
  const child = spawn(process.execPath, [holdfastProgram, 'upgrade-database', '--old-postgres', oldPostgres], {
    env: env(dataDir),
  });
  let output = '';
  let isStopped = false;
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    // Once: a second signal would end it at once.
    if (!isStopped && output.includes('Copying table')) isStopped = child.kill('SIGINT');
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect([code, readdirSync(postgres).sort()]).toEqual([130, ['cluster', 'password']]);
  expect(existsSync(path.join(postgres, 'cluster', 'postmaster.pid'))).toBe(false);

  const write = `const [url] = process.argv.slice(1);
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("insert into organizations (name) values ('late')").catch(({ code }) => console.log(code));
    await client.end();`;
  const codes = new Set<string>();
  const claim = await claimDataDir(dataDir, logger);
  try {
    const failing = upgradeCluster(postgres, {
      ...{ claim, logger, oldPostgres },
      onStep: (text) => {
        if (!text.startsWith('Copying table')) return;
        const args = ['--input-type=module', '-e', write, runningUrl(postgres)];
        codes.add(execFileSync(process.execPath, args, { encoding: 'utf8' }).trim());
        throw new Error('no space left');
      },
    });
    await expect(failing).rejects.toThrow('no space left');
  } finally {
    claim.release();
  }
  expect([...codes]).toEqual(['25006']);
  expect(readdirSync(postgres).sort()).toEqual(['cluster', 'password']);
}, 240_000);

test('an upgrade is refused while a server runs, without the old programs, and for files of a later Postgres', async () => {
  const dataDir = oldDataDir('refused');
  const missing = await upgrade(dataDir, '--old-postgres', home);
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('--old-postgres')]);
  const other = path.join(home, 'running');
  const server = spawn(process.execPath, [holdfastProgram, 'server'], {
    env: { ...env(other), HOLDFAST_LISTEN: '127.0.0.1:0', HOLDFAST_MANAGEMENT_LISTEN: 'same' },
    stdio: 'ignore',
  });
  try {
    while ((await readRunningUrl(path.join(other, 'postgres'))) === null) await sleep(50);
    const running = await upgrade(other);
    expect([running.code, running.stderr]).toEqual([1, expect.stringMatching(/server|in use|owns/i)]);
  } finally {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    await ended;
  }
  const start = startEmbeddedPostgres(path.join(other, 'postgres'), logger, {
    binaries: findOldBinaries(17, oldPostgres),
  });
  await expect(start).rejects.toThrow('use the release that wrote it');
}, 240_000);

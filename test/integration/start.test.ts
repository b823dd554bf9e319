import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { tuned } from '../../testkit/tuned.ts';
import { temporaryClusterDir } from '../support/cluster-dir.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, masterKeys, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let dataDir: string;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-start-'));
});
afterEach(endChildren);
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

async function endChildren(): Promise<void> {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await exit;
  }
  children.clear();
}

interface Started {
  readonly child: ChildProcess;
  /** Log lines so far. */
  lines(): { msg: string; reason?: string; url?: string }[];
  /** All that was written so far. */
  output(): string;
  /** The exit code and what was written to standard error. */
  ended(): Promise<{ code: number; stderr: string }>;
}

/** Runs a command of Holdfast as a process. */
function start(words: string[], settings: Readonly<Record<string, string>>): Started {
  const child = spawn(process.execPath, [holdfastProgram, ...words], {
    env: {
      PATH: process.env['PATH'],
      HOME: dataDir,
      HOLDFAST_DATA_DIR: dataDir,
      HOLDFAST_LISTEN: '127.0.0.1:0',
      HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
      HOLDFAST_MASTER_KEYS: masterKeys,
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = once(child, 'close');
  const lines = (): { msg: string; reason?: string; url?: string }[] =>
    `${stdout}\n${stderr}`.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
  const ended = async (): Promise<{ code: number; stderr: string }> => {
    const [code] = (await closed) as [number];
    return { code, stderr: stderr.replace(/^\{.*\n/gm, '') };
  };
  return { child, lines, ended, output: () => stdout + stderr };
}

const waits = ({ lines }: Started): string[] =>
  lines().flatMap(({ msg, reason }) => (msg === 'waiting' ? [reason ?? ''] : []));
const isListening = ({ lines, child }: Started): boolean => {
  if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
  return lines().some(({ msg }) => msg === 'listening');
};

async function expectSentence(started: Started, sentence: RegExp): Promise<void> {
  const { code, stderr } = await started.ended();
  expect(stderr).toMatch(sentence);
  // One line, without a stack trace.
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect(code).toBe(1);
}

const away = async (): Promise<string> => `postgres://user:hunter2@127.0.0.1:${await findFreePort()}/none`;

describe('without Postgres', () => {
  test.each([['server'], ['migrate'], ['admin', 'list']])(
    '%s %s waits as configured, reports it once, and ends',
    async (...words) => {
      const url = await away();
      const started = start(
        words.filter((word) => word !== undefined),
        { HOLDFAST_DATABASE_URL: url, ...tuned({ startWaitSeconds: 2 }) },
      );
      await expectSentence(started, /^holdfast: Postgres at 127\.0\.0\.1:\d+ .*ECONNREFUSED.*; gave up after 2 s$/m);
      expect(waits(started)).toHaveLength(1);
      expect(JSON.stringify(started.lines())).not.toContain('hunter2');
    },
  );

  test('0 does not wait', async () => {
    const started = start(['migrate'], { HOLDFAST_DATABASE_URL: await away(), ...tuned({ startWaitSeconds: 0 }) });
    await expectSentence(started, /is not available: .*ECONNREFUSED/);
    expect(waits(started)).toEqual([]);
  });

  test('a server starts as soon as Postgres is there', async () => {
    await using proxy = await openTcpProxy(database.url);
    proxy.refuse();
    const started = start(['server'], { HOLDFAST_DATABASE_URL: proxy.url });
    await until(() => waits(started).length > 0, 'it says that it waits');
    proxy.accept();
    await until(() => isListening(started), 'it listens');
    expect(started.lines().map(({ msg }) => msg)).toContain('available now');
  });

  test('a server that waits ends on SIGTERM', async () => {
    const started = start(['server'], { HOLDFAST_DATABASE_URL: await away(), ...tuned({ startWaitSeconds: 3600 }) });
    await until(() => waits(started).length > 0, 'it says that it waits');
    started.child.kill('SIGTERM');
    expect(await started.ended()).toEqual({ code: 0, stderr: '' });
    // At the exit, waiting lines are written at once, and so perhaps before one that a thread is writing.
    const last = started.lines().slice(-2);
    expect(last.map(({ msg }) => msg).toSorted()).toEqual(['shutting down', 'stopped']);
  });

  test('a server that hangs counts as away', async () => {
    await using proxy = await openTcpProxy(database.url);
    proxy.hang();
    const settings = tuned({ databaseConnectMs: 1000, startWaitSeconds: 1 });
    const started = start(['server'], { HOLDFAST_DATABASE_URL: proxy.url, ...settings });
    await expectSentence(started, /no answer within 1000 ms; gave up/);
  });
});

describe('faults that waiting cannot fix end the start at once', () => {
  const wrong = (change: (url: URL) => void): string => {
    const url = new URL(database.url);
    change(url);
    return url.toString();
  };

  test('a wrong password', async () => {
    const url = wrong((each) => {
      each.password = 'wrong';
    });
    const started = start(['server'], { HOLDFAST_DATABASE_URL: url, ...tuned({ startWaitSeconds: 3600 }) });
    await expectSentence(started, /cannot be used: password authentication failed/);
    expect(waits(started)).toEqual([]);
  });

  test('a wrong password, with a second host that is away', async () => {
    const url = wrong((each) => {
      each.password = 'wrong';
    }).replace(/@([^/]+)/, `@127.0.0.1:${await findFreePort()},$1`);
    const started = start(['migrate'], { HOLDFAST_DATABASE_URL: url, ...tuned({ startWaitSeconds: 3600 }) });
    await expectSentence(started, /cannot be used: .*password authentication failed/);
  });

  test('a database that does not exist', async () => {
    const url = wrong((each) => {
      each.pathname = '/nowhere';
    });
    const started = start(['migrate'], { HOLDFAST_DATABASE_URL: url, ...tuned({ startWaitSeconds: 3600 }) });
    await expectSentence(started, /cannot be used: database "nowhere" does not exist/);
  });

  test('pending migrations', async () => {
    const admin = new pg.Client({ connectionString: database.ownerUrl });
    await admin.connect();
    const name = `empty_${process.pid}`;
    await admin.query(`create database ${name}`);
    try {
      const url = wrong((each) => {
        each.pathname = `/${name}`;
      });
      const started = start(['server'], { HOLDFAST_DATABASE_URL: url, ...tuned({ startWaitSeconds: 3600 }) });
      await expectSentence(started, /The database lacks \d+ migration\(s\): 0001_platform/);
    } finally {
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    }
  });

  test('a malformed URL', async () => {
    const url = 'postgres://user:hunter2@host:5432/name?target_session_attrs=standby';
    const { code, stderr } = await start(['server'], { HOLDFAST_DATABASE_URL: url }).ended();
    expect(stderr).toMatch(/^holdfast: Invalid settings:\n {2}HOLDFAST_DATABASE_URL: target_session_attrs/);
    expect(stderr).not.toContain('hunter2');
    expect(code).toBe(1);
  });
});

describe('without S3', () => {
  /** Answers requests for the bucket with this status. */
  async function openBucket(): Promise<AsyncDisposable & { url: string; status: number }> {
    const server = createServer((_request, response) => {
      response.writeHead(bucket.status).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const bucket = {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      status: 503,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        server.close();
      },
    };
    return bucket;
  }

  const settings = (endpoint: string) => ({
    HOLDFAST_DATABASE_URL: database.url,
    HOLDFAST_S3_BUCKET: 'states',
    HOLDFAST_S3_ENDPOINT: endpoint,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  });

  test.each(['server', 'create-bucket'])('%s waits and ends with a sentence', async (verb) => {
    const endpoint = `http://127.0.0.1:${await findFreePort()}`;
    const started = start([verb], { ...settings(endpoint), ...tuned({ startWaitSeconds: 1 }) });
    await expectSentence(
      started,
      /^holdfast: S3 at 127\.0\.0\.1:\d+, bucket states .*cannot be reached.*; gave up after 1 s$/m,
    );
  });

  test('a server starts as soon as S3 is there, and an outage later does not end it', async () => {
    await using bucket = await openBucket();
    const started = start(['server'], settings(bucket.url));
    await until(() => waits(started).length > 0, 'it says that it waits');
    bucket.status = 200;
    await until(() => isListening(started), 'it listens');
    bucket.status = 503;
    const url = (started.lines().find(({ msg }) => msg === 'listening') as unknown as { management: string })
      .management;
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({ status: 'degraded', blobs: 'unreachable' });
  });

  test('a missing bucket ends it at once', async () => {
    await using bucket = await openBucket();
    bucket.status = 404;
    const started = start(['server'], { ...settings(bucket.url), ...tuned({ startWaitSeconds: 3600 }) });
    await expectSentence(started, /bucket states .* cannot be used/);
    expect(waits(started)).toEqual([]);
  });
});

test('a data directory that is a file ends the server with a sentence', async () => {
  const file = path.join(dataDir, 'file');
  writeFileSync(file, '');
  const { code, stderr } = await start(['server'], { HOLDFAST_DATA_DIR: file }).ended();
  expect(stderr).toMatch(/^holdfast: HOLDFAST_DATA_DIR: .*file cannot be used: .*\n$/);
  expect(code).toBe(1);
});

test('a server that others reach over plain HTTP says so', async () => {
  const started = start(['server'], { HOLDFAST_DATABASE_URL: database.url, HOLDFAST_LISTEN: '0.0.0.0:0' });
  await until(() => isListening(started), 'it listens');
  const warnings = started.lines().filter(({ msg }) => msg.startsWith('HOLDFAST_'));
  expect(warnings).toEqual([
    expect.objectContaining({ level: 'warn', msg: expect.stringMatching(/^HOLDFAST_LISTEN: /) }),
  ]);
});

test('the token of the first admin is in a file of its owner, and in no log; without its Postgres, the server ends', async () => {
  const directory = temporaryClusterDir();
  try {
    const first = start(['server'], { HOLDFAST_DATA_DIR: directory });
    await until(() => isListening(first) && first.output().includes('Holdfast is ready'), 'it says how to log in');
    const file = path.join(directory, 'first-token');
    expect(first.output()).toContain(`$(cat ${file})`);
    expect(first.output()).not.toContain('hf-');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const authorization = `token ${readFileSync(file, 'utf8').trim()}`;
    const url = first.lines().find(({ msg }) => msg === 'listening')?.url;
    const headers = { accept: 'application/vnd.pulumi+8', authorization };
    const answer = await fetch(`${url}/api/user`, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([200, { githubLogin: 'admin', siteAdmin: true }]);
    first.child.kill('SIGTERM');
    await first.ended();
    rmSync(file);
    const second = start(['server'], { HOLDFAST_DATA_DIR: directory });
    await until(() => isListening(second), 'it listens again');
    expect(existsSync(file)).toBe(false);
    // A supervisor starts it again.
    const pidFile = path.join(directory, 'postgres', 'cluster', 'postmaster.pid');
    process.kill(Number(readFileSync(pidFile, 'utf8').split('\n')[0]), 'SIGKILL');
    expect((await second.ended()).code).toBe(1);
    expect(second.lines()).toContainEqual(
      expect.objectContaining({ level: 'fatal', msg: expect.stringContaining('the embedded Postgres has ended') }),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('without its master keys, an embedded server makes no others for secrets that exist', async () => {
  const directory = temporaryClusterDir();
  const settings = { HOLDFAST_DATA_DIR: directory, HOLDFAST_MASTER_KEYS: '' };
  const keys = path.join(directory, 'master-keys');
  const aside = path.join(directory, 'elsewhere');
  try {
    mkdirSync(directory, { recursive: true });
    // As made on another day: the id would be another one now.
    writeFileSync(keys, `before:${Buffer.alloc(32, 1).toString('base64')}\n`, { mode: 0o600 });
    const first = start(['server'], settings);
    await until(() => isListening(first), 'it listens');
    const url = first.lines().find(({ msg }) => msg === 'listening')?.url;
    const headers = {
      accept: 'application/vnd.pulumi+8',
      'content-type': 'application/json',
      authorization: `token ${readFileSync(path.join(directory, 'first-token'), 'utf8').trim()}`,
    };
    const post = async (where: string, body: object): Promise<number> =>
      (await fetch(`${url}/api/stacks/holdfast${where}`, { method: 'POST', headers, body: JSON.stringify(body) }))
        .status;
    expect(await post('/shop', { stackName: 'dev' })).toBe(200);
    expect(await post('/shop/dev/encrypt', { plaintext: Buffer.from('hunter2').toString('base64') })).toBe(200);
    first.child.kill('SIGTERM');
    await first.ended();
    renameSync(keys, aside);
    const second = start(['server'], settings);
    await until(() => second.child.exitCode !== null || isListening(second), 'it ends or starts');
    expect(second.output()).not.toContain('"listening"');
    const { code, stderr } = await second.ended();
    expect(stderr).toContain("HOLDFAST_MASTER_KEYS: new keys cannot read the database's secrets of master key before");
    expect([code, existsSync(keys)]).toEqual([1, false]);
    renameSync(aside, keys);
    const third = start(['server'], settings);
    await until(() => isListening(third), 'it listens again');
  } finally {
    await endChildren();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

const untilGone = (directory: string): Promise<void> =>
  until(() => !existsSync(path.join(directory, 'postgres', 'cluster', 'postmaster.pid')), 'its Postgres has ended');

test('Ctrl-C, which a server gets from the terminal and from npm, stops it and its Postgres', async () => {
  const directory = temporaryClusterDir();
  try {
    const endTwice = async () => {
      const server = start(['server'], { HOLDFAST_DATA_DIR: directory });
      await until(() => isListening(server), 'it listens');
      server.child.kill('SIGINT');
      await sleep(1);
      server.child.kill('SIGINT');
      const { code } = await server.ended();
      await untilGone(directory);
      return [code, server.lines().at(-1)?.msg];
    };
    let end = await endTwice();
    // On a busy machine the signals may be so far apart that they count as two.
    for (let repeated = 0; repeated < 3 && end[0] === 1; repeated++) end = await endTwice();
    expect(end).toEqual([0, 'stopped']);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test.each([
  ['by a second signal', ['SIGINT', 'SIGINT'], 1],
  ['while it starts', ['SIGTERM'], 0],
  ['because its terminal is closed', ['SIGHUP'], 0],
] as const)('a server that is ended %s leaves no Postgres behind', async (_how, signals, code) => {
  const directory = temporaryClusterDir();
  try {
    const server = start(['server'], { HOLDFAST_DATA_DIR: directory, HOLDFAST_DRAIN_SECONDS: '120' });
    const pidFile = path.join(directory, 'postgres', 'cluster', 'postmaster.pid');
    const isUp = (): boolean => (code === 0 ? existsSync(pidFile) : isListening(server));
    await until(isUp, 'it is up');
    for (const [at, signal] of signals.entries()) {
      if (at > 0) {
        await until(() => server.lines().some(({ msg }) => msg === 'shutting down'), 'it has noticed the first');
        // Longer than two signals count as one.
        await sleep(600);
      }
      server.child.kill(signal);
    }
    expect((await server.ended()).code).toBe(code);
    await untilGone(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('at a terminal, the first start prints a link that opens the web UI once', async () => {
  const directory = temporaryClusterDir();
  const command = `'${process.execPath}' '${holdfastProgram}' server`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    env: {
      PATH: process.env['PATH'],
      HOME: directory,
      HOLDFAST_DATA_DIR: directory,
      HOLDFAST_LISTEN: '127.0.0.1:0',
      HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  try {
    await until(() => /Web UI.*#hfl-\w+/.test(output) && output.includes('"listening"'), 'it prints a link');
    const link = /#(hfl-\w+)/.exec(output)?.[1] as string;
    const url = /"url":"([^"]+)"/.exec(output)?.[1] as string;
    const signIn = () =>
      fetch(`${url}/sign-in/link`, {
        method: 'POST',
        redirect: 'manual',
        headers: { origin: url, 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ link }),
      });
    expect((await signIn()).status).toBe(303);
    expect((await signIn()).status).toBe(401);
    expect(existsSync(path.join(directory, 'first-token'))).toBe(false);
  } finally {
    // As a person ends it.
    child.stdin.write('\u0003');
    await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('the embedded Postgres starts although another process takes its port first', async () => {
  const directory = temporaryClusterDir();
  const taker = createServer().listen(0, '127.0.0.1');
  await once(taker, 'listening');
  const { port: taken } = taker.address() as AddressInfo;
  const ports = [taken, await findFreePort()];
  try {
    const postgres = await startEmbeddedPostgres(directory, createLogger({ level: 'silent' }), {
      choosePort: async () => ports.shift() as number,
    });
    await postgres.stop();
    expect(new URL(postgres.url).port).not.toBe(String(taken));
    expect(ports).toEqual([]);
  } finally {
    taker.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('the embedded Postgres does not get the secrets of the server', async () => {
  const directory = temporaryClusterDir();
  const names = ['HOLDFAST_MASTER_KEYS', 'AWS_SECRET_ACCESS_KEY', 'VAULT_TOKEN'];
  for (const name of names) process.env[name] = 'hunter2';
  const postgres = await startEmbeddedPostgres(directory, createLogger({ level: 'silent' }));
  try {
    const pid = readFileSync(path.join(directory, 'cluster', 'postmaster.pid'), 'utf8').split('\n')[0];
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    const given = environment.map((each) => each.split('=')[0] as string);
    expect(given).toContain('PATH');
    expect(given.filter((name) => /^(HOLDFAST|AWS|VAULT)_/.test(name))).toEqual([]);
  } finally {
    for (const name of names) delete process.env[name];
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('the embedded Postgres is waited for while it recovers from a crash', async () => {
  const directory = temporaryClusterDir();
  const lines: string[] = [];
  const logger = createLogger({ level: 'info' }, { write: (line) => void lines.push(line) });
  try {
    const first = await startEmbeddedPostgres(directory, logger);
    const pid = Number(readFileSync(path.join(directory, 'cluster', 'postmaster.pid'), 'utf8').split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    await first.stop();
    const second = await startEmbeddedPostgres(directory, logger);
    await second.stop();
    expect(lines.filter((line) => line.includes('it is recovering'))).toHaveLength(1);
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('the embedded Postgres waits for the end of one that has ended but whose parent has not noticed', async () => {
  const directory = temporaryClusterDir();
  const logger = createLogger({ level: 'silent' });
  let parent: ChildProcess | undefined;
  try {
    await (await startEmbeddedPostgres(directory, logger)).stop();
    const cluster = path.join(directory, 'cluster');
    const { uid, gid } = statSync(cluster);
    parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], {
      uid,
      gid,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [pid] = (await once(parent.stdout as NonNullable<ChildProcess['stdout']>, 'data')) as [Buffer];
    const stat = `/proc/${Number(String(pid))}/stat`;
    await until(() => readFileSync(stat, 'utf8').includes(') Z '), 'it has ended');
    writeFileSync(path.join(cluster, 'postmaster.pid'), `${Number(String(pid))}\n${cluster}\n`);
    const starting = startEmbeddedPostgres(directory, logger);
    await sleep(500);
    parent.kill('SIGKILL');
    await (await starting).stop();
  } finally {
    parent?.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});

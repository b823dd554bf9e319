import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type Finding, runChecks } from '../../src/cli/doctor/check.ts';
import { runDoctor } from '../../src/cli/doctor/run-doctor.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { diskFolder } from '../../testkit/memory-folder.ts';
import { type RedisServer, startRedisServer } from '../../testkit/redis-server.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { sendError } from '../contracts/fake-s3.ts';
import { runHoldfast } from '../support/admin.ts';
import { createTestAuthority, type TestAuthority } from '../support/certificates.ts';
import {
  type Listener,
  openHttpProxy,
  openSilence,
  startVisitedServer,
  type VisitedServer,
} from '../support/doctor.ts';
import { type Fault, type MemoryS3, startMemoryS3 } from '../support/memory-s3.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { configOf } from '../support/test-settings.ts';

type Settings = Readonly<Record<`HOLDFAST_${string}`, string>>;
const accessKeys = { AWS_ACCESS_KEY_ID: 'doctor-key', AWS_SECRET_ACCESS_KEY: 'doctor-secret-key' };
const clockFile = path.join(import.meta.dirname, '../faults/support/shifted-clock.ts');

let server: VisitedServer;
let redis: RedisServer;
let s3: MemoryS3;
let other: TestApp;
let otherUrl: string;
let authority: TestAuthority;
let silence: Listener;
let folder: string;
let owner: pg.Client;
beforeAll(async () => {
  Object.assign(process.env, accessKeys);
  folder = mkdtempSync(path.join(diskFolder(), 'holdfast-doctor-parts-'));
  server = await startVisitedServer();
  owner = new pg.Client({ connectionString: server.databaseUrl });
  await owner.connect();
  await owner.query(`create role stranger login password 'stranger'`);
  await owner.query('create database empty');
  // The visits name other blob stores than the server, as if it had owned its own for less than a minute.
  await owner.query(`create function forget_before() returns trigger language plpgsql as
    'begin new.store_nonce_before := null; return new; end'`);
  await owner.query(
    'create trigger forget_before before update on installation for each row execute function forget_before()',
  );
  redis = await startRedisServer();
  s3 = await startMemoryS3('doctor-secret-key');
  other = await createTestApp();
  otherUrl = await other.app.listen({ port: 0, host: '127.0.0.1' });
  authority = await createTestAuthority();
  silence = await openSilence();
});
afterAll(async () => {
  await owner?.end();
  await silence?.[Symbol.asyncDispose]();
  await authority?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
  await s3?.close();
  await redis?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
  for (const name of Object.keys(accessKeys)) delete process.env[name];
});

/** This machine may be too busy for the limit of the command. */
const limitMs = 120_000;
const atOnce = 4;

const visit = (settings: Settings = {}): Promise<Finding[]> =>
  runDoctor(() => configOf({ ...(server.settings as Settings), ...settings }), limitMs);

/** Everything that can be set. */
const everything = (): Settings => ({
  HOLDFAST_REDIS_URL: redis.url,
  HOLDFAST_S3_BUCKET: 'blobs',
  HOLDFAST_S3_ENDPOINT: s3.url,
  HOLDFAST_SECOND_STORE: 's3://blobs/second',
  HOLDFAST_BACKUP_TO: 's3://blobs/backups?lock=governance:30',
});

/** Without the latency: this machine may be busy. */
const faultsIn = (findings: readonly Finding[]): Record<string, Finding['status']> =>
  Object.fromEntries(
    findings.flatMap(({ name, status }) => (status === 'ok' || name === 'redis-latency' ? [] : [[name, status]])),
  );

const database = (change: (url: URL) => unknown): Settings => {
  const url = new URL(server.databaseUrl);
  change(url);
  return { HOLDFAST_DATABASE_URL: url.toString() };
};

/** A data directory that a doctor may look at although nothing runs there. */
function directory(name: string, mode: number): string {
  const made = path.join(folder, name);
  mkdirSync(made);
  chmodSync(made, mode);
  return made;
}

test('a healthy server has only good findings, also with everything that can be set, and nothing is left behind', async () => {
  const findings = [...(await visit()), ...(await visit(everything()))];
  expect(faultsIn(findings)).toEqual({});
  const names = findings.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['database', 'redis-latency', 'blob-store', 'second-store', 'backup-target']),
  );
  expect([...s3.objects.keys()]).toEqual([]);
});

interface Case {
  readonly what: string;
  /** Settings, or what they are made of at that time. */
  readonly settings: Settings | (() => Settings | Promise<Settings>);
  readonly found: Readonly<Record<string, Finding['status']>>;
  readonly seen: RegExp;
}

const dropped: (() => PromiseLike<void>)[] = [];
afterAll(async () => {
  for (const drop of dropped) await drop();
});
const proxied = async (...[options]: [Parameters<typeof openHttpProxy>[1]]): Promise<Settings> => {
  const proxy = await openHttpProxy(server.url, options);
  dropped.push(() => proxy[Symbol.asyncDispose]());
  return { HOLDFAST_PUBLIC_URL: proxy.url, HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' };
};
const certified = async (name: string, names: string): Promise<Settings> => {
  const { cert, key } = await authority.issue(name, names);
  return proxied({ tls: { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') } });
};

/** None changes anything that another one uses, so that all can be visited at the same time. */
const cases: readonly Case[] = [
  {
    what: 'invalid settings',
    settings: { HOLDFAST_LEASE_SECONDS: '5', HOLDFAST_DATABASE_URL: 'mysql://u:hunter2@h' },
    found: { settings: 'fail' },
    seen: /HOLDFAST_DATABASE_URL: .*HOLDFAST_LEASE_SECONDS: must be a whole number|HOLDFAST_LEASE_SECONDS/,
  },
  {
    what: 'plain HTTP for other machines',
    settings: () => ({ HOLDFAST_LISTEN: `0.0.0.0:${server.url.split(':')[2]}` }),
    found: { settings: 'warn' },
    seen: /over plain HTTP/,
  },
  {
    what: 'a wrong password of Postgres',
    settings: () => database((url) => Object.assign(url, { password: 'hunter2' })),
    found: { database: 'fail' },
    seen: /password authentication failed/,
  },
  {
    what: 'a database that does not exist',
    settings: () => database((url) => Object.assign(url, { pathname: '/nowhere' })),
    found: { database: 'fail' },
    seen: /database "nowhere" does not exist/,
  },
  {
    what: 'a Postgres that does not run',
    settings: async () => {
      const port = await findFreePort();
      return database((url) => Object.assign(url, { port: String(port) }));
    },
    found: { database: 'fail' },
    seen: /ECONNREFUSED/,
  },
  {
    what: 'missing migrations',
    settings: () => database((url) => Object.assign(url, { pathname: '/empty' })),
    found: { 'database-migrations': 'fail' },
    seen: /lacks \d+ of \d+ migrations, from 0001/,
  },
  {
    what: 'a database user without rights',
    settings: () => database((url) => Object.assign(url, { username: 'stranger', password: 'stranger' })),
    found: {
      'database-migrations': 'fail',
      'database-privileges': 'fail',
    },
    seen: /lacks rights/,
  },
  {
    what: 'too few connections',
    settings: { HOLDFAST_DATABASE_POOL_SIZE: '500' },
    found: { 'database-connections': 'warn' },
    seen: /opens up to 502/,
  },
  {
    what: 'a replica that is no standby',
    settings: () => ({ HOLDFAST_DATABASE_REPLICA_URL: server.databaseUrl }),
    found: { 'database-replica': 'fail' },
    seen: /not a standby/,
  },
  {
    what: 'a master key that is not the one that was used',
    settings: () => {
      const [id] = readFileSync(path.join(server.dataDir, 'master-keys'), 'utf8').split(':');
      return { HOLDFAST_MASTER_KEYS: `${id}:${KeyRing.generate().split(':')[1]}` };
    },
    found: { 'master-keys': 'fail' },
    seen: /is not the one that was used/,
  },
  {
    what: 'a KMS that cannot be reached',
    settings: async () => ({
      HOLDFAST_MASTER_KEYS: `new:vault://127.0.0.1:${await findFreePort()}/transit/holdfast?tls=off`,
      HOLDFAST_VAULT_TOKEN: 'hvs.hunter2hunter2',
    }),
    found: { 'master-keys': 'fail' },
    seen: /Vault/,
  },
  {
    what: 'a Redis that does not run',
    settings: async () => ({ HOLDFAST_REDIS_URL: `redis://:hunter2@127.0.0.1:${await findFreePort()}` }),
    found: { redis: 'fail' },
    seen: /ECONNREFUSED/,
  },
  {
    what: 'a wrong bucket',
    settings: () => ({ HOLDFAST_S3_BUCKET: 'blobs', HOLDFAST_S3_ENDPOINT: `${s3.url}/missing` }),
    found: { 'blob-store': 'fail' },
    seen: /writing \(small\)/,
  },
  {
    what: 'a second store that may not be written',
    settings: () => ({ ...everything(), HOLDFAST_SECOND_STORE: 's3://blobs/denied-put' }),
    found: { 'second-store': 'fail' },
    seen: /writing \(small\): blob store denied access \(AccessDenied/,
  },
  {
    what: 'a second store that takes no parts',
    settings: () => ({ ...everything(), HOLDFAST_SECOND_STORE: 's3://blobs/denied-part' }),
    found: { 'second-store': 'fail' },
    seen: /writing \(multipart\)/,
  },
  {
    what: 'a strict second store in a folder that nobody has mounted',
    settings: () => ({ HOLDFAST_SECOND_STORE: path.join(folder, 'nowhere/second?strict=true') }),
    found: { 'second-store': 'warn' },
    seen: /Neither \S+\/nowhere\/second nor its parent folder exists/,
  },
  {
    what: 'a location of backups from which nothing may be deleted',
    settings: () => ({ ...everything(), HOLDFAST_BACKUP_TO: 's3://blobs/denied-delete' }),
    found: { 'backup-target': 'fail' },
    seen: /deleting: blob store denied access/,
  },
  {
    what: 'a location of backups that takes no locks',
    settings: () => ({ ...everything(), HOLDFAST_BACKUP_TO: 's3://blobs/denied-lock?lock=governance:30' }),
    found: { 'backup-target': 'fail' },
    seen: /writing \(locked\): blob store denied access/,
  },
  {
    what: 'a store that changes bytes',
    settings: () => ({ ...everything(), HOLDFAST_SECOND_STORE: 's3://blobs/changed' }),
    found: { 'second-store': 'fail' },
    seen: /returns other bytes/,
  },
  {
    what: 'a public URL that leads to another installation',
    settings: () => ({ HOLDFAST_PUBLIC_URL: otherUrl }),
    found: { 'public-url': 'fail' },
    seen: /leads to another installation/,
  },
  {
    what: 'a public URL at which another program answers',
    settings: () => ({ HOLDFAST_PUBLIC_URL: s3.url }),
    found: { 'public-url': 'fail' },
    seen: /not as a server of this release/,
  },
  {
    what: 'a public URL that cannot be reached',
    settings: async () => ({ HOLDFAST_PUBLIC_URL: `http://doctor.test:${await findFreePort()}` }),
    found: { 'public-url': 'fail' },
    seen: /cannot be reached/,
  },
  {
    what: 'a certificate of an unknown authority',
    settings: () => certified('untrusted', 'IP:127.0.0.1'),
    found: { 'public-url-certificate': 'fail' },
    seen: /not trusted here/,
  },
  {
    what: 'a proxy that holds responses back',
    settings: () => proxied({ holds: true }),
    found: { 'public-url-stream': 'warn' },
    seen: /holds responses back/,
  },
  {
    what: 'a proxy that refuses large bodies',
    settings: () =>
      proxied({
        meddle: ({ headers }, response) => {
          if (Number(headers['content-length'] ?? 0) < 1_048_576) return false;
          response.writeHead(413).end();
          return true;
        },
      }),
    found: { 'public-url-bodies': 'fail' },
    seen: /answers 413 to a body/,
  },
  {
    what: 'a proxy that waits for whole bodies',
    settings: () => proxied({ meddle: ({ method }) => method === 'POST' }),
    found: { 'public-url-bodies': 'warn' },
    seen: /waits for whole bodies/,
  },
  {
    what: 'a data directory that others can write',
    settings: () => ({ HOLDFAST_DATA_DIR: directory('open', 0o777), HOLDFAST_DATABASE_URL: server.databaseUrl }),
    found: { 'data-directory': 'warn', 'master-keys': 'warn' },
    seen: /written by other users/,
  },
  {
    what: 'master keys that others can read',
    settings: () => {
      const made = directory('readable', 0o755);
      writeFileSync(path.join(made, 'master-keys'), readFileSync(path.join(server.dataDir, 'master-keys')));
      return { HOLDFAST_DATA_DIR: made, HOLDFAST_DATABASE_URL: server.databaseUrl };
    },
    found: { 'data-directory': 'warn' },
    seen: /master-keys can be read by other users/,
  },
  {
    what: 'a data directory that its owner may not write',
    settings: () => {
      const made = directory('closed', 0o555);
      if (process.geteuid?.() === 0) chownSync(made, 65_534, 65_534);
      return { HOLDFAST_DATA_DIR: made, HOLDFAST_DATABASE_URL: server.databaseUrl };
    },
    found: { 'data-directory': 'fail', 'master-keys': 'warn' },
    seen: /cannot be written/,
  },
  {
    what: 'an embedded database that does not run',
    settings: () => ({ HOLDFAST_DATA_DIR: directory('idle', 0o700) }),
    found: { database: 'warn' },
    seen: /does not run/,
  },
];

describe('each fault is found by its name, and only that', () => {
  let visits: Map<string, Finding[]>;
  beforeAll(async () => {
    const denied: Fault = (response) => sendError(response, 403, 'AccessDenied');
    s3.fault = (operation, key, headers) => {
      if (key.startsWith('/missing')) return (response) => sendError(response, 404, 'NoSuchBucket');
      if (key.startsWith('denied-put') && operation === 'Put') return denied;
      if (key.startsWith('denied-part') && operation === 'Part') return denied;
      if (key.startsWith('denied-lock') && 'x-amz-object-lock-mode' in headers) return denied;
      if (key.startsWith('denied-delete') && operation === 'Delete') return denied;
      if (key.startsWith('changed') && operation === 'Get')
        return (response, _operation, stored) => {
          response.end(Buffer.alloc(stored?.length ?? 0));
        };
      return undefined;
    };
    visits = new Map();
    const left = [...cases];
    const visitNext = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift()) {
        const settings = typeof next.settings === 'function' ? await next.settings() : next.settings;
        visits.set(next.what, await visit(settings));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, visitNext));
  });

  test.each(cases)('$what', ({ found, seen, what }) => {
    const findings = visits.get(what) ?? [];
    const bad = findings.filter(({ status }) => status !== 'ok');
    if (!isDeepStrictEqual(faultsIn(findings), found)) throw new Error(JSON.stringify(bad));
    expect(bad.map((finding) => finding.seen).join('\n')).toMatch(seen);
    for (const { fix } of bad) expect(fix).toMatch(/^[A-Z`d].*\.$/);
    expect(JSON.stringify(findings)).not.toContain('hunter2');
  });
});

test('a location of backups keeps an object as long as its lock holds, where objects have no versions', async () => {
  const locked = new Set<string>();
  s3.fault = (operation, key, headers) => {
    if ('x-amz-object-lock-mode' in headers) locked.add(key);
    return operation === 'Delete' && locked.has(key)
      ? (response) => sendError(response, 403, 'AccessDenied')
      : undefined;
  };
  const findings = await visit({ ...everything(), HOLDFAST_BACKUP_TO: 's3://blobs/locked?lock=compliance:30' });
  expect(faultsIn(findings)).toEqual({});
  expect(locked.size).toBe(1);
});

test('nothing is written to a second bucket that replicates itself', async () => {
  s3.fault = (operation, key) =>
    key.startsWith('replica') && operation !== 'List'
      ? (response) => sendError(response, 403, 'AccessDenied')
      : undefined;
  const findings = await visit({ ...everything(), HOLDFAST_SECOND_STORE: 's3://blobs/replica?replicated=true' });
  expect(faultsIn(findings)).toEqual({});
  expect(findings).toContainEqual(expect.objectContaining({ name: 'second-store', status: 'ok' }));
});

test('a public URL of the machine around this container, at which nothing listens here', async () => {
  const url = `https://localhost:${await findFreePort()}`;
  process.env['HOLDFAST_PUBLIC_URL'] = url;
  try {
    const findings = await visit({ HOLDFAST_PUBLIC_URL: url });
    expect(faultsIn(findings)).toEqual({ 'public-url': 'warn' });
    expect(findings.find(({ name }) => name === 'public-url')?.fix).toContain('container');
    const own = { HOLDFAST_LISTEN: new URL(url).host, HOLDFAST_PUBLIC_URL: url };
    expect(faultsIn(await visit(own))).toMatchObject({ 'public-url': 'fail' });
  } finally {
    delete process.env['HOLDFAST_PUBLIC_URL'];
  }
});

test('an S3 policy without the actions for uploads, which a task needs at the blob store only', async () => {
  s3.fault = (_, key) => (key === '?uploads' ? (response) => sendError(response, 403, 'AccessDenied') : undefined);
  const findings = await visit(everything());
  expect(faultsIn(findings)).toEqual({ 'blob-store': 'fail', 'second-store': 'warn', 'backup-target': 'warn' });
  const { fix, seen } = findings.find(({ name }) => name === 'blob-store') as Finding;
  expect(seen).toContain('listing unfinished uploads: blob store denied access');
  expect(fix).toContain('s3:ListBucketMultipartUploads');
});

test('a Redis that evicts and writes to disk', async () => {
  const client = new Redis(redis.adminUrl);
  try {
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await client.config('SET', 'save', '60 1');
    const findings = await visit({ HOLDFAST_REDIS_URL: redis.url });
    expect(faultsIn(findings)).toEqual({ 'redis-policy': 'fail', 'redis-persistence': 'warn' });
  } finally {
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    await client.config('SET', 'save', '');
    client.disconnect();
  }
});

test('a Postgres that does not sync, and an installation that is read-only and replaced', async () => {
  const reload = async (fsync: string): Promise<void> => {
    await owner.query(`alter system set fsync = ${fsync}`);
    await owner.query('select pg_reload_conf()');
  };
  await reload('off');
  await owner.query(
    `update installation set read_only_since = now(), read_only_reason = 'a move', fenced_since = now()`,
  );
  try {
    const findings = await visit();
    expect(faultsIn(findings)).toEqual({ 'database-durability': 'fail', 'read-only': 'warn', site: 'fail' });
  } finally {
    await reload('on');
    await owner.query(`update installation set read_only_since = null, read_only_reason = null, fenced_since = null`);
  }
});

test('a database whose commits do not wait for the disk', async () => {
  const { rows } = await owner.query('select quote_ident(current_database()) as name');
  await owner.query(`alter database ${rows[0].name} set synchronous_commit = off`);
  try {
    expect(faultsIn(await visit())).toEqual({ 'database-durability': 'fail' });
  } finally {
    await owner.query(`alter database ${rows[0].name} reset synchronous_commit`);
  }
});

const disk = SmallDisk.mount(8 * 1024 * 1024);
afterAll(() => disk?.[Symbol.dispose]());

(disk ? test : test.skip)('a full disk', async () => {
  const full = disk as SmallDisk;
  full.fill();
  const settings = { HOLDFAST_DATA_DIR: full.directory, HOLDFAST_DATABASE_URL: server.databaseUrl };
  expect(faultsIn(await visit(settings))).toMatchObject({ disk: 'fail' });
});

test('the command exits with 1 and one JSON document; its clock is wrong here', async () => {
  const file = path.join(folder, 'clock');
  writeFileSync(file, String(3_600_000));
  const env = { PATH: process.env['PATH'], TEST_CLOCK_FILE: file, NODE_OPTIONS: `--import ${clockFile}` };
  const { code, stdout } = await runHoldfast({ ...env, ...server.settings }, 'doctor', '--json');
  expect(code).toBe(1);
  expect(faultsIn((JSON.parse(stdout) as { findings: Finding[] }).findings)).toMatchObject({ clock: 'fail' });
  const healthy = await runHoldfast({ PATH: process.env['PATH'], ...server.settings }, 'doctor');
  // On a busy machine something may be late.
  expect([healthy.code, healthy.stderr]).toEqual([healthy.stdout.includes('FAIL') ? 1 : 0, '']);
  expect(healthy.stdout).toMatch(/^ok {4}node +Node \d/m);
});

test('the doctor ends although everything that it visits hangs, and names each', async () => {
  const { port } = new URL(silence.url);
  const url = `http://127.0.0.1:${port}`;
  const { code, stdout } = await runHoldfast(
    {
      PATH: process.env['PATH'],
      ...accessKeys,
      HOLDFAST_DATABASE_URL: `postgres://u:hunter2@127.0.0.1:${port}/n`,
      HOLDFAST_REDIS_URL: `redis://:hunter2@127.0.0.1:${port}`,
      HOLDFAST_S3_BUCKET: 'blobs',
      HOLDFAST_S3_ENDPOINT: url,
      HOLDFAST_SECOND_STORE: 's3://blobs/second',
      HOLDFAST_BACKUP_TO: 's3://blobs/backups',
      HOLDFAST_PUBLIC_URL: url,
      HOLDFAST_MASTER_KEYS: KeyRing.generate(),
    },
    'doctor',
    '--json',
  );
  expect(code).toBe(1);
  expect(faultsIn((JSON.parse(stdout) as { findings: Finding[] }).findings)).toMatchObject(
    Object.fromEntries(
      ['backup-target', 'blob-store', 'database', 'public-url', 'redis', 'second-store'].map((name) => [name, 'fail']),
    ),
  );
  expect(stdout).not.toContain('hunter2');
});

test('a check that never ends has failed, and the others are not lost', async () => {
  const never = { name: 'never', run: () => new Promise<never>(() => {}) };
  const broken = { name: 'broken', run: () => Promise.reject(new Error('a bug')) };
  const thrown = {
    name: 'thrown',
    run: () => {
      throw new Error('another bug');
    },
  };
  const findings = await runChecks([never, broken, thrown], 50);
  expect(findings.map(({ name, seen, status }) => [name, status, seen])).toEqual([
    ['never', 'fail', 'There was no answer within 0.05 s.'],
    ['broken', 'fail', 'a bug'],
    ['thrown', 'fail', 'another bug'],
  ]);
});

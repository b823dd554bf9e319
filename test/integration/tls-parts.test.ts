import { once } from 'node:events';
import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Duplex, pipeline } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { PostgresConnector } from '../../src/shared/platform/db/postgres-connector.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { trustAuthorities } from '../../src/shared/platform/tls/certificates.ts';
import { type RedisServer, startRedisServer } from '../../testkit/redis-server.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { type CertificateFiles, createTestAuthority, type TestAuthority } from '../support/certificates.ts';
import { temporaryClusterDir } from '../support/cluster-dir.ts';
import { type RunningCommand, startCommand } from '../support/command.ts';
import { createTestDatabase, masterKeys, type TestDatabase } from '../support/test-app.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';

let authority: TestAuthority;
let good: CertificateFiles;
let elsewhere: CertificateFiles;
let client: CertificateFiles;
let dataDir: string;
let database: TestDatabase;
beforeAll(async () => {
  authority = await createTestAuthority();
  [good, elsewhere, client] = await Promise.all([
    authority.issue('server', 'DNS:localhost,IP:127.0.0.1'),
    authority.issue('elsewhere', 'DNS:elsewhere.example'),
    authority.issue('holdfast'),
  ]);
  dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-tls-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  await database?.[Symbol.asyncDispose]();
  await authority?.[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

const verbs: RunningCommand[] = [];
afterEach(async () => {
  await Promise.all(verbs.splice(0).map((verb) => verb.stop()));
});

/** With the usual wait for unavailable services: an invalid certificate must not cause a wait. */
function start(words: readonly string[], settings: Readonly<Record<string, string>>): RunningCommand {
  const verb = startCommand(words, { HOLDFAST_DATA_DIR: dataDir, HOLDFAST_MASTER_KEYS: masterKeys, ...settings });
  verbs.push(verb);
  return verb;
}

/** It ends with one sentence. */
async function expectSentence(verb: RunningCommand, sentence: RegExp, { mayWait = false } = {}): Promise<void> {
  const { code, stderr } = await verb.ended();
  expect(stderr).toMatch(sentence);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect(code).toBe(1);
  if (!mayWait) expect(verb.output()).not.toContain('"waiting"');
}

const untrusted = /cannot be used: its certificate is not trusted: .*HOLDFAST_CA_FILE/;
const otherName = /cannot be used: its certificate is for another host name: .*elsewhere\.example/;

describe('HOLDFAST_CA_FILE', () => {
  test.each([
    ['is not there', null, /^HOLDFAST_CA_FILE: .*none\.pem cannot be read \(ENOENT\)$/],
    ['holds no certificate', 'nothing', /^HOLDFAST_CA_FILE: .*none\.pem contains no certificate in PEM format$/],
    [
      'holds a broken one',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      /^HOLDFAST_CA_FILE: .*none\.pem contains a certificate that cannot be read$/,
    ],
  ])('is rejected when it %s', async (_, content, sentence) => {
    const file = path.join(dataDir, 'none.pem');
    if (content !== null) writeFileSync(file, content);
    expect(() => trustAuthorities(file, 'HOLDFAST_CA_FILE')).toThrow(sentence);
  });
});

describe('Postgres', () => {
  const directory = temporaryClusterDir();
  let server: EmbeddedPostgres;

  beforeAll(async () => {
    server = await startEmbeddedPostgres(directory, createLogger({ level: 'warn' }), { flags: ['-c', 'fsync=off'] });
    // The key must belong to the user that Postgres runs as.
    const { uid, gid } = statSync(directory);
    for (const [name, { cert, key }] of Object.entries({ good, elsewhere }))
      for (const [from, end] of [
        [cert, 'crt'],
        [key, 'key'],
      ] as const) {
        copyFileSync(from, path.join(directory, `${name}.${end}`));
        chownSync(path.join(directory, `${name}.${end}`), uid, gid);
      }
    copyFileSync(authority.caFile, path.join(directory, 'authority.crt'));
    const hba = path.join(directory, 'cluster', 'pg_hba.conf');
    writeFileSync(hba, `hostssl all shown 127.0.0.1/32 cert map=shown\n${readFileSync(hba, 'utf8')}`);
    writeFileSync(path.join(directory, 'cluster', 'pg_ident.conf'), 'shown holdfast shown\n');
    await withServer(async (admin) => {
      await admin.query('create role shown login superuser');
      await admin.query(`alter system set ssl_ca_file = '${path.join(directory, 'authority.crt')}'`);
    });
    await show('good');
    await withServer((admin) =>
      admin.query('alter system set ssl = on').then(() => admin.query('select pg_reload_conf()')),
    );
    await until(() => connects(url('require')), 'Postgres speaks TLS');
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function withServer(work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await work(admin);
    await admin.end();
  }

  async function show(name: 'good' | 'elsewhere'): Promise<void> {
    await withServer(async (admin) => {
      await admin.query(`alter system set ssl_cert_file = '${path.join(directory, `${name}.crt`)}'`);
      await admin.query(`alter system set ssl_key_file = '${path.join(directory, `${name}.key`)}'`);
      await admin.query('select pg_reload_conf()');
    });
  }

  const url = (mode: string, parameters: Readonly<Record<string, string>> = {}, user?: string): string => {
    const made = new URL(server.url);
    made.hostname = 'localhost';
    if (user !== undefined) [made.username, made.password] = [user, ''];
    made.search = String(new URLSearchParams({ ...(mode === '' ? {} : { sslmode: mode }), ...parameters }));
    return made.href;
  };

  /** Whether the connection is encrypted. */
  async function encrypts(address: string): Promise<boolean> {
    const connection = await new PostgresConnector(address, { connectMs: 20_000 }).connect();
    const { rows } = await connection.client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    await connection.end();
    return rows[0].ssl;
  }
  const connects = (address: string): Promise<boolean> => encrypts(address).catch(() => false);

  test('supports the modes of libpq', async () => {
    const ca = { sslrootcert: authority.caFile };
    expect(await encrypts(url(''))).toBe(false);
    expect(await encrypts(url('disable'))).toBe(false);
    expect(await encrypts(url('require'))).toBe(true);
    expect(await encrypts(url('verify-ca', ca))).toBe(true);
    expect(await encrypts(url('verify-full', ca))).toBe(true);
    expect(await encrypts(url('', ca))).toBe(true);
    await expect(encrypts(url('verify-ca'))).rejects.toThrow(/certificate/);
    await expect(encrypts(url('verify-full'))).rejects.toThrow(/certificate/);
    await expect(encrypts(url('require', { sslrootcert: elsewhere.cert }))).rejects.toThrow(/certificate/);
    expect(() => new PostgresConnector(url('prefer'), { connectMs: 1 })).toThrow(/sslmode must be disable, require/);
    expect(() => new PostgresConnector(url('', { ssl: 'true' }), { connectMs: 1 })).toThrow(/ssl is not supported/);
  });

  test('gets our client certificate', async () => {
    const files = { sslrootcert: authority.caFile, sslcert: client.cert, sslkey: client.key };
    expect(await encrypts(url('verify-full', files, 'shown'))).toBe(true);
    await expect(encrypts(url('verify-full', { sslrootcert: authority.caFile }, 'shown'))).rejects.toThrow(
      /certificate/,
    );
    expect(() => new PostgresConnector(url('require', { sslcert: client.cert }), { connectMs: 1 })).toThrow(
      /sslcert and sslkey go together/,
    );
  });

  test('is trusted through HOLDFAST_CA_FILE only', async () => {
    const settings = { HOLDFAST_DATABASE_URL: url('verify-full') };
    await expectSentence(start(['migrate'], settings), untrusted);
    expect(await start(['migrate'], { ...settings, HOLDFAST_CA_FILE: authority.caFile }).ended()).toMatchObject({
      code: 0,
    });
  });

  test('with the certificate of another host is rejected at once, with one host or several', async () => {
    await show('elsewhere');
    const ca = { sslrootcert: authority.caFile };
    await until(async () => !(await connects(url('verify-full', ca))), 'Postgres shows the other certificate');
    expect(await encrypts(url('verify-ca', ca))).toBe(true);
    const settings = { HOLDFAST_CA_FILE: authority.caFile };
    await expectSentence(start(['migrate'], { ...settings, HOLDFAST_DATABASE_URL: url('verify-full') }), otherName);
    const several = url('verify-full').replace('@', `@127.0.0.1:${await findFreePort()},`);
    await expectSentence(start(['migrate'], { ...settings, HOLDFAST_DATABASE_URL: several }), otherName);
  });
});

await describeWithTools('Redis', ['redis-server'], () => {
  let server: RedisServer;
  let plain: Redis;
  let tlsPort: number;

  beforeAll(async () => {
    tlsPort = await findFreePort();
    const files = ['--tls-cert-file', good.cert, '--tls-key-file', good.key, '--tls-ca-cert-file', authority.caFile];
    server = await startRedisServer({
      extraArgs: ['--tls-port', String(tlsPort), ...files, '--tls-auth-clients', 'no'],
    });
    plain = new Redis(server.url);
  });
  afterAll(async () => {
    plain?.disconnect();
    await server?.stop();
  });

  const worker = (query = '', settings: Readonly<Record<string, string>> = {}): RunningCommand =>
    start(['worker'], {
      HOLDFAST_DATABASE_URL: database.url,
      HOLDFAST_REDIS_URL: `rediss://localhost:${tlsPort}${query}`,
      HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
      ...settings,
    });
  const serves = (verb: RunningCommand): Promise<void> =>
    until(() => verb.output().includes('"listening"'), 'the worker listens');

  test('is trusted through HOLDFAST_CA_FILE or sslrootcert only', async () => {
    await expectSentence(worker(), untrusted);
    await serves(worker('', { HOLDFAST_CA_FILE: authority.caFile }));
    await serves(worker(`?sslrootcert=${authority.caFile}`));
  });

  test('gets our client certificate', async () => {
    await plain.config('SET', 'tls-auth-clients', 'yes');
    await expectSentence(
      worker('', { HOLDFAST_CA_FILE: authority.caFile }),
      /cannot be used: no TLS connection can be made: .*certificate required/i,
      // TLS 1.3 reports this only after the handshake; the connection may break before that is read.
      { mayWait: true },
    );
    await serves(worker(`?sslrootcert=${authority.caFile}&sslcert=${client.cert}&sslkey=${client.key}`));
    await plain.config('SET', 'tls-auth-clients', 'no');
  });

  test('with the certificate of another host is rejected at once', async () => {
    await plain.config('SET', 'tls-cert-file', elsewhere.cert, 'tls-key-file', elsewhere.key);
    await expectSentence(worker('', { HOLDFAST_CA_FILE: authority.caFile }), otherName);
  });
});

await describeWithTools('S3', ['versitygw'], () => {
  let plain: S3Server;
  beforeAll(async () => {
    plain = await startS3Server('versitygw');
  });
  afterAll(() => plain?.stop());

  /** The S3 server behind TLS. */
  async function startTls({ cert, key }: CertificateFiles): Promise<{ port: number } & AsyncDisposable> {
    const open = new Set<Duplex>();
    const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (outer) => {
      const inner = connect(Number(new URL(plain.endpoint).port), '127.0.0.1');
      for (const socket of [outer, inner]) {
        open.add(socket);
        socket.on('error', () => {}).on('close', () => open.delete(socket));
      }
      pipeline(outer, inner, outer, () => {});
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const stop = async (): Promise<void> => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    };
    return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: stop };
  }
  const createBucket = (port: number, settings: Readonly<Record<string, string>>): RunningCommand =>
    start(['create-bucket'], {
      HOLDFAST_S3_BUCKET: 'holdfast-checkpoints',
      HOLDFAST_S3_ENDPOINT: `https://localhost:${port}`,
      AWS_ACCESS_KEY_ID: plain.accessKeyId,
      AWS_SECRET_ACCESS_KEY: plain.secretAccessKey,
      ...settings,
    });

  test('is trusted through HOLDFAST_CA_FILE only', async () => {
    await using server = await startTls(good);
    await expectSentence(createBucket(server.port, {}), untrusted);
    const made = await createBucket(server.port, { HOLDFAST_CA_FILE: authority.caFile }).ended();
    expect(made).toEqual({ code: 0, stderr: '' });
  });

  test('with the certificate of another host is rejected at once', async () => {
    await using server = await startTls(elsewhere);
    await expectSentence(createBucket(server.port, { HOLDFAST_CA_FILE: authority.caFile }), otherName);
  });

  test('without TLS is rejected at once', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await expectSentence(
      createBucket(port, {}),
      /cannot be used: no TLS connection can be made: .*wrong version number/,
    );
    server.close();
  });
});

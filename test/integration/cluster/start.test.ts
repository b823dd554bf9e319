import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { startApi } from '../../../src/api/main.ts';
import { startServer } from '../../../src/server.ts';
import { mintToken } from '../../../src/shared/platform/crypto/secret-token.ts';
import { migrate } from '../../../src/shared/platform/db/migrate.ts';
import { Lifecycle } from '../../../src/shared/platform/lifecycle/lifecycle.ts';
import { PartUnavailableError } from '../../../src/shared/platform/lifecycle/start-wait.ts';
import { createLogger } from '../../../src/shared/platform/logger/logger.ts';
import { RedisPolicyError } from '../../../src/shared/platform/redis/redis.ts';
import { encodeDocument } from '../../../src/shared/state/checkpoints/document-codec.ts';
import { startWorker } from '../../../src/workers/main.ts';
import { type RedisServer, startRedisServer } from '../../../testkit/redis-server.ts';
import { findFreePort } from '../../../testkit/server-process.ts';
import { deployment } from '../../support/state.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { cliAccept, createTestDatabase, masterKeys, type TestDatabase } from '../../support/test-app.ts';
import { configOf, type TestSettings } from '../../support/test-settings.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

await describeWithTools('the start of a cluster', ['redis-server'], () => {
  let database: TestDatabase;
  let redis: RedisServer | undefined;
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await redis?.stop();
    redis = undefined;
    await database[Symbol.asyncDispose]();
  });

  const waiting = (lines: readonly string[]): string[] =>
    lines.map((line) => JSON.parse(line)).flatMap(({ msg, part }) => (msg === 'waiting' ? [part] : []));
  const configFor = (redisUrl: string, settings: TestSettings = {}) =>
    configOf({
      HOLDFAST_DATABASE_URL: database.url,
      HOLDFAST_REDIS_URL: redisUrl,
      HOLDFAST_MASTER_KEYS: masterKeys,
      HOLDFAST_LISTEN: '127.0.0.1:0',
      HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
      HOLDFAST_SHUTDOWN_SECONDS: '5',
      ...settings,
    });

  test.each([
    ['api', startApi],
    ['worker', startWorker],
  ])('an %s started before Redis reports it, waits, and works once Redis is there', async (_role, start) => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn' }, { write: (line) => void lines.push(line) });
    redis = await startRedisServer();
    await redis.kill();
    const starting = start(configFor(redis.url), logger);
    await until(() => waiting(lines).length > 0, 'it says that it waits');
    expect(waiting(lines)).toEqual([expect.stringContaining('Redis')]);
    await redis.restart();
    const { context, url } = await starting;
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await context.lifecycle.close();
  });

  test.each([
    ['api', startApi],
    ['worker', startWorker],
  ])('an %s starts on a database that a newer release has migrated and reports it', async (_role, start) => {
    const client = new pg.Client({ connectionString: database.ownerUrl });
    await client.connect();
    await client.query(`insert into holdfast_migrations (name, run_on) values ('9999_newer', now())`);
    await client.end();
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn' }, { write: (line) => void lines.push(line) });
    redis = await startRedisServer();
    const { context, url } = await start(configFor(redis.url), logger);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await context.lifecycle.close();
    expect(lines.filter((line) => line.includes('9999_newer'))).toHaveLength(1);
    expect(await migrate({ url: database.ownerUrl, connectMs: 30_000, waitMs: 0, logger })).toEqual([]);
  });

  test.each([
    ['server', startServer],
    ['worker', startWorker],
  ])('a %s takes jobs only once it knows its database and its site', async (_role, start) => {
    const logger = createLogger({ level: 'silent' });
    redis = await startRedisServer();
    const parts: string[] = [];
    class Recorder extends Lifecycle {
      override onClose(...[phase, name, close]: Parameters<Lifecycle['onClose']>): void {
        parts.push(name);
        super.onClose(phase, name, close);
      }
    }
    const config = configFor(redis.url);
    const { context } = await start(config, logger, { lifecycle: new Recorder(logger, config) });
    await context.lifecycle.close();
    const relevant = ['database watch', 'site watch', 'workers'];
    expect(parts.filter((part) => relevant.includes(part))).toEqual(relevant);
  });

  test.each([
    ['an api', startApi],
    ['a server', startServer],
  ])('%s opens its connections to Postgres before calls need them', async (_role, start) => {
    redis = await startRedisServer();
    const config = configFor(redis.url);
    const { context } = await start(config, createLogger({ level: 'silent' }));
    try {
      const { poolSize } = config.database;
      const isOpen = ({ acquired, idle }: { acquired: number; idle: number }): boolean => acquired + idle === poolSize;
      await until(() => isOpen(context.db.poolState()), 'all are open');
    } finally {
      await context.lifecycle.close();
    }
  });

  test.each([
    ['api', 'blobs', startApi],
    ['worker', 'blobs', startWorker],
    ['api', 'queue metrics', startApi],
    ['worker', 'queue metrics', startWorker],
  ] as const)(
    'an %s waits for a Postgres that fails over while it starts, here after the %s',
    async (_role, part, start) => {
      const lines: string[] = [];
      const logger = createLogger({ level: 'warn' }, { write: (line) => void lines.push(line) });
      redis = await startRedisServer();
      await using proxy = await openTcpProxy(database.url);
      const config = configFor(redis.url, { HOLDFAST_DATABASE_URL: proxy.url, startWaitSeconds: 30 });
      class FailingOver extends Lifecycle {
        override onClose(...args: Parameters<Lifecycle['onClose']>): void {
          super.onClose(...args);
          if (args[1] === part) proxy.refuse();
        }
      }
      const starting = start(config, logger, { lifecycle: new FailingOver(logger, config) });
      await Promise.race([starting, until(() => waiting(lines).length > 0, 'it says that it waits')]);
      expect(waiting(lines)).toEqual([expect.stringContaining('Postgres')]);
      proxy.accept();
      const { context, url } = await starting;
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      await context.lifecycle.close();
    },
  );

  const withoutKeys = { HOLDFAST_MASTER_KEYS: '' };
  const rejectionOf = (starting: Promise<unknown>): Promise<string> =>
    starting.then(
      () => 'started',
      (error: Error) => `${error.name}: ${error.message}`,
    );

  test('a worker works without master keys; an api does not start without them', async () => {
    const logger = createLogger({ level: 'silent' });
    redis = await startRedisServer();
    expect(await rejectionOf(startApi(configFor(redis.url, withoutKeys), logger))).toBe(
      'ConfigError: Invalid settings:\n  HOLDFAST_MASTER_KEYS: needed by this role',
    );
    const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-start-'));
    const shared = { HOLDFAST_DATA_DIR: directory, HOLDFAST_DIRECT_BYTES: '1', HOLDFAST_INLINE_BYTES: '1' };
    const worker = await startWorker(configFor(redis.url, { ...shared, ...withoutKeys }), logger);
    const api = await startApi(configFor(redis.url, shared), logger);
    try {
      const { identity } = api.context;
      const { id } = await identity.ensureOrganization('acme');
      const user = await identity.ensureUser('eve');
      await identity.setMembership(id, user.id, 'admin');
      const { token, hash } = mintToken('test-');
      await identity.insertToken({ userId: user.id, hash, description: 'test', expiresAt: null });
      const call = (method: string, place: string, body?: object) =>
        fetch(`${api.url}/api/stacks/acme/proj${place}`, {
          method,
          headers: { authorization: `token ${token}`, accept: cliAccept, 'content-type': 'application/json' },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      expect((await call('POST', '', { stackName: 'dev' })).status).toBe(200);
      expect((await call('POST', '/dev/encrypt', { plaintext: 'QQ==' })).status).toBe(200);
      expect((await call('POST', '/dev/import', deployment(3))).status).toBe(200);
      expect(await (await call('GET', '/dev/export')).json()).toEqual(deployment(3));
      await expect(worker.context.cipher.encrypt(randomUUID(), [])).rejects.toThrow('has no master keys');
    } finally {
      await api.context.lifecycle.close();
      await worker.context.lifecycle.close();
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test('a worker requires the master keys when documents are or were encrypted, and says so', async () => {
    const logger = createLogger({ level: 'silent' });
    redis = await startRedisServer();
    const encrypted = configFor(redis.url, { ...withoutKeys, HOLDFAST_ENCRYPT_DOCUMENTS: 'true' });
    expect(await rejectionOf(startWorker(encrypted, logger))).toBe(
      'ConfigError: Invalid settings:\n  HOLDFAST_MASTER_KEYS: needed with HOLDFAST_ENCRYPT_DOCUMENTS',
    );
    const { context } = await startWorker(configFor(redis.url, { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' }), logger);
    await context.documents.saveEncoded(encodeDocument(randomBytes(100_000)));
    await context.lifecycle.close();
    expect(await rejectionOf(startWorker(configFor(redis.url, withoutKeys), logger))).toContain(
      'HOLDFAST_MASTER_KEYS: needed because documents in the blob store are encrypted',
    );
  });

  test('without Redis the start fails with a message that names the setting and no password', async () => {
    const logger = createLogger({ level: 'silent' });
    const url = `redis://user:hunter2@127.0.0.1:${await findFreePort()}`;
    const error: unknown = await startApi(configFor(url, { startWaitSeconds: 1 }), logger).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(PartUnavailableError);
    expect((error as Error).message).toMatch(/127\.0\.0\.1:\d+ \(HOLDFAST_REDIS_URL\)/);
    expect((error as Error).message).not.toContain('hunter2');
  });

  test('a Redis that evicts keys is rejected', async () => {
    redis = await startRedisServer({ extraArgs: ['--maxmemory-policy', 'allkeys-lru'] });
    const logger = createLogger({ level: 'silent' });
    await expect(startApi(configFor(redis.url), logger)).rejects.toThrow(RedisPolicyError);
    await expect(startWorker(configFor(redis.url), logger)).rejects.toThrow('noeviction');
  });
});

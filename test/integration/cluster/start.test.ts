import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { type RedisServer, startRedisServer } from '../../../e2e/support/redis-server.ts';
import { findFreePort } from '../../../e2e/support/server-process.ts';
import { startApi } from '../../../src/api/main.ts';
import { parseConfig } from '../../../src/shared/platform/config/config.ts';
import { migrate } from '../../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../../src/shared/platform/logger/logger.ts';
import { RedisPolicyError, RedisUnreachableError } from '../../../src/shared/platform/queue/redis.ts';
import { startWorker } from '../../../src/workers/main.ts';
import { createTestDatabase, masterKeys, type TestDatabase } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';

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

  const configFor = (redisUrl: string) =>
    parseConfig({
      HOLDFAST_DATABASE_URL: database.url,
      HOLDFAST_REDIS_URL: redisUrl,
      HOLDFAST_MASTER_KEYS: masterKeys,
      HOLDFAST_LISTEN: '127.0.0.1:0',
      HOLDFAST_WORKER_LISTEN: '127.0.0.1:0',
      HOLDFAST_SHUTDOWN_SECONDS: '5',
    });

  test.each([
    ['api', startApi],
    ['worker', startWorker],
  ])('an %s started before Redis says so, waits, and works once Redis is there', async (_role, start) => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn' }, { write: (line) => void lines.push(line) });
    redis = await startRedisServer();
    await redis.kill();
    const starting = start(configFor(redis.url), logger);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(lines.join('')).toContain('waiting for Redis');
    await redis.restart();
    const { context, url } = await starting;
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await context.lifecycle.close();
  });

  test.each([
    ['api', startApi],
    ['worker', startWorker],
  ])('an %s starts on a database that a newer release has migrated, and says so', async (_role, start) => {
    const client = new pg.Client({ connectionString: database.url });
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
    expect(await migrate(database.url, logger)).toEqual([]);
  });

  test('without a Redis the start ends, in a sentence that names the setting and no password', async () => {
    const logger = createLogger({ level: 'silent' });
    const url = `redis://user:hunter2@127.0.0.1:${await findFreePort()}`;
    const error: unknown = await startApi(configFor(url), logger).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RedisUnreachableError);
    expect((error as Error).message).toMatch(/127\.0\.0\.1:\d+ \(HOLDFAST_REDIS_URL\)/);
    expect((error as Error).message).not.toContain('hunter2');
  }, 30_000);

  test('a Redis that evicts is refused', async () => {
    redis = await startRedisServer({ extraArgs: ['--maxmemory-policy', 'allkeys-lru'] });
    const logger = createLogger({ level: 'silent' });
    await expect(startApi(configFor(redis.url), logger)).rejects.toThrow(RedisPolicyError);
    await expect(startWorker(configFor(redis.url), logger)).rejects.toThrow('noeviction');
  });
});

import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { createJobAdmissionRepository } from '../../src/shared/jobs/job-admission-repository.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/shared/platform/db/database.ts';
import { createOutcomeRepository } from '../../src/shared/platform/outcomes/outcome-repository.ts';
import { RedisPayloadStore } from '../../src/shared/platform/payloads/redis-payload-store.ts';
import { command, type RedisGroup, startRedisCluster } from '../../testkit/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../../testkit/redis-server.ts';
import { startStopwatch } from '../support/running-time.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';
import { chunksOf, mib } from './blob-store-suite.ts';
import { compactionJob } from './dispatcher-suite.ts';
import { type ApiSide, openApiSide, openWorkerSide, type WorkerSide } from './redis-queue.ts';

/** A call without a notification asks for its job result after a second. */
const notifiedMs = 900;

await describeWithTools('an address of one Redis that leads to another one', ['redis-server'], () => {
  const servers: RedisServer[] = [];
  let first: RedisServer;
  let second: RedisServer;
  let admin: Redis;
  let database: TestDatabase;
  let db: Database;
  let proxy: TcpProxy;
  let api: ApiSide;
  let worker: WorkerSide;
  let payloads: RedisPayloadStore;
  beforeAll(async () => {
    for (let at = 0; at < 2; at++) servers.push(await startRedisServer());
    [first, second] = servers as [RedisServer, RedisServer];
    admin = new Redis(first.adminUrl);
    database = await createTestDatabase();
    db = await openDatabase({ ...parseConfig({}).database, url: database.url, poolSize: 20 });
  });
  afterAll(async () => {
    admin?.disconnect();
    await db?.close();
    await database?.[Symbol.asyncDispose]();
    for (const server of servers) await server.stop();
  });
  beforeEach(async () => {
    proxy = await openTcpProxy(first.url);
    const options = {
      url: proxy.url,
      admissions: createJobAdmissionRepository(db),
      jobResults: createOutcomeRepository(db),
    };
    api = await openApiSide({ ...options, waitMs: 10_000 });
    worker = openWorkerSide({ ...options, work: async () => {} });
    payloads = new RedisPayloadStore(api.producer, { writes: 8 * mib, imports: 8 * mib });
    await untilWritten();
  });
  afterEach(async () => {
    await admin.replicaof('NO', 'ONE');
    await payloads.close();
    await worker.close();
    await api.close();
    await proxy[Symbol.asyncDispose]();
  });

  /** What a large write needs of Redis. */
  async function write(): Promise<void> {
    const key = randomUUID();
    const body = { maxBytes: mib, declaredBytes: 1000, budget: 'writes' } as const;
    await payloads.put(key, chunksOf(randomBytes(1000)), body);
    await api.dispatcher.run(compactionJob());
    await payloads.delete(key);
  }

  /** How long it takes until a write succeeds, in ms of this process. */
  async function untilWritten(): Promise<number> {
    const elapsedMs = startStopwatch();
    const isWritten = (): Promise<boolean> =>
      write().then(
        () => true,
        () => false,
      );
    await until(isWritten, 'a write succeeds');
    return elapsedMs();
  }

  const demote = (): Promise<unknown> => admin.replicaof('127.0.0.1', second.port);

  it('leaves a server that became a replica, although its connections stay open', async () => {
    proxy.redirect(second.url);
    await demote();
    expect(await untilWritten()).toBeLessThan(10_000);
    await api.monitor.poll();
    expect(api.monitor.redis.up).toBe(true);
  });

  it('reports a replica as down, because nothing can be written there', async () => {
    await demote();
    await api.monitor.poll();
    expect(api.monitor.redis.up).toBe(false);
  });

  it('leaves connections whose other end vanished, all of them', async () => {
    proxy.vanish();
    proxy.redirect(second.url);
    proxy.reappear();
    expect(await untilWritten()).toBeLessThan(30_000);
    const notified = async (): Promise<boolean> => {
      const elapsedMs = startStopwatch();
      await api.dispatcher.run(compactionJob());
      return elapsedMs() < notifiedMs;
    };
    await until(notified, 'a message notifies the call');
  });
});

await describeWithTools('a Redis cluster', ['redis-server'], () => {
  let group: RedisGroup;
  let database: TestDatabase;
  let db: Database;
  const proxies: TcpProxy[] = [];
  beforeAll(async () => {
    database = await createTestDatabase();
    db = await openDatabase({ ...parseConfig({}).database, url: database.url, poolSize: 20 });
    group = await startRedisCluster();
    for (const { port } of group.servers) {
      const proxy = await openTcpProxy(`redis://127.0.0.1:${port}`);
      proxies.push(proxy);
      await command(port, ['CONFIG', 'SET', 'cluster-announce-port', new URL(proxy.url).port]);
    }
  });
  afterAll(async () => {
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
    await group?.[Symbol.asyncDispose]();
    await db?.close();
    await database?.[Symbol.asyncDispose]();
  });

  it('notifies calls again after all connections have vanished', async () => {
    const login = group.url.slice(0, group.url.indexOf('@') + 1);
    const url = `${login}${proxies.map(({ url }) => new URL(url).host).join(',')}`;
    const options = { url, admissions: createJobAdmissionRepository(db), jobResults: createOutcomeRepository(db) };
    await using api = disposing(await openApiSide({ ...options, waitMs: 10_000 }));
    await using _worker = disposing(openWorkerSide({ ...options, work: async () => {} }));
    const isNotified = async (): Promise<boolean> => {
      const elapsedMs = startStopwatch();
      const isDone = await api.dispatcher.run(compactionJob()).then(
        () => true,
        () => false,
      );
      return isDone && elapsedMs() < notifiedMs;
    };
    await until(isNotified, 'a message notifies the call');
    for (const proxy of proxies) proxy.vanish();
    for (const proxy of proxies) proxy.reappear();
    await until(isNotified, 'a message notifies the call again');
  });
});

function disposing<T extends { close(): Promise<void> }>(side: T): T & AsyncDisposable {
  return Object.assign(side, { [Symbol.asyncDispose]: () => side.close() });
}

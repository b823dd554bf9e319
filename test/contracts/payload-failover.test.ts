import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { RedisPayloadStore } from '../../src/shared/platform/payloads/redis-payload-store.ts';
import {
  connectRedis,
  disconnectRedis,
  type RedisConnection,
  untilReady,
} from '../../src/shared/platform/redis/redis.ts';
import { groupPassword, type RedisGroup, startRedisCluster } from '../../testkit/redis-groups.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';
import { chunksOf, mib, readAll } from './blob-store-suite.ts';
import { held } from './payload-store-suite.ts';
import { describeOnRedis } from './redis-under-test.ts';

const logger = createLogger({ level: 'silent' });
const options = { maxBytes: 64 * mib, declaredBytes: null, budget: 'writes' } as const;

/** Where the stores are, as an operator sees it. */
interface Place {
  /** Connects as Holdfast does. */
  readonly connect: () => Promise<RedisConnection>;
  /** One for each server. */
  readonly admins: () => readonly Redis[];
}

/**
 * Copies everything that the servers hold. The result puts the copy back and closes all connections, as when a replica takes over
 * that has received nothing since.
 */
async function replicaOf(admins: readonly Redis[]): Promise<() => Promise<void>> {
  const copies = await Promise.all(
    admins.map(async (admin) =>
      Promise.all(
        (await admin.keys('*')).map(async (key) => ({
          key,
          ttl: await admin.pttl(key),
          value: await admin.dumpBuffer(key),
        })),
      ),
    ),
  );
  return async () => {
    for (const [at, admin] of admins.entries()) {
      const copied = copies[at] ?? [];
      for (const { key, ttl, value } of copied) await admin.restore(key, ttl, value, 'REPLACE');
      const newer = (await admin.keys('*')).filter((key) => copied.every((each) => each.key !== key));
      for (const key of newer) await admin.unlink(key);
    }
    for (const admin of admins) await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  };
}

const bodyKeys = async (admins: readonly Redis[]): Promise<string[]> =>
  (await Promise.all(admins.map((admin) => admin.keys('holdfast:body:*')))).flat();

function describeFailover(name: string, { connect, admins }: Place): void {
  describe(`payload store in ${name} after a failover that undid the release of a body`, () => {
    const stores: RedisPayloadStore[] = [];
    const open = async (): Promise<RedisPayloadStore> => {
      const store = new RedisPayloadStore(await connect(), { writes: 8 * mib, imports: 8 * mib }, { renewMs: 50 });
      stores.push(store);
      return store;
    };
    let api: RedisPayloadStore;
    let worker: RedisPayloadStore;
    let key: string;
    let keptKey: string;
    beforeEach(async () => {
      [api, worker] = [await open(), await open()];
      [key, keptKey] = [randomUUID(), randomUUID()];
    });
    afterEach(async () => {
      for (const store of stores.splice(0)) await store.close();
      for (const admin of admins()) await admin.flushall();
    });

    /** Waits until the reservation and chunks of one body are released again. The other body, which was not released, must still exist. */
    async function expectReleased(kept: Awaited<ReturnType<RedisPayloadStore['put']>>): Promise<void> {
      const observer = await open();
      const isReleased = async (): Promise<boolean> =>
        (await held(observer)) === kept.bytes && (await bodyKeys(admins())).every((each) => each.includes(keptKey));
      await until(() => isReleased().catch(() => false), 'the body is released again');
      expect(await readAll(observer.open(keptKey, kept.encryption))).toHaveLength(kept.bytes);
    }

    it('by the process that received it, the body is released again', async () => {
      const kept = await api.put(keptKey, chunksOf(randomBytes(1000)), options);
      await api.put(key, chunksOf(randomBytes(2 * mib)), options);
      const takeOver = await replicaOf(admins());
      await api.delete(key);
      expect(await held(api)).toBe(kept.bytes);
      await takeOver();
      await expectReleased(kept);
    });

    it('by a worker, the body is released again, even if its API is gone', async () => {
      const kept = await api.put(keptKey, chunksOf(randomBytes(1000)), options);
      await api.put(key, chunksOf(randomBytes(2 * mib)), options);
      await api.close();
      const takeOver = await replicaOf(admins());
      await worker.delete(key);
      await takeOver();
      await expectReleased(kept);
    });

    it('by a worker that is gone, the body is released again by the API, which had seen its release', async () => {
      const kept = await api.put(keptKey, chunksOf(randomBytes(1000)), options);
      await api.put(key, chunksOf(randomBytes(2 * mib)), options);
      const takeOver = await replicaOf(admins());
      for (const admin of admins())
        for (const each of await admin.keys(`holdfast:body:*${key}*`)) await admin.unlink(each);
      await until(async () => (await held(worker)) === kept.bytes, 'the API has seen it');
      await api.delete(key);
      await takeOver();
      await expectReleased(kept);
    });

    it('time and again, the body is released each time', async () => {
      const kept = await api.put(keptKey, chunksOf(randomBytes(1000)), options);
      await api.put(key, chunksOf(randomBytes(2 * mib)), options);
      const takeOver = await replicaOf(admins());
      await api.delete(key);
      for (let time = 0; time < 3; time++) {
        await takeOver();
        await expectReleased(kept);
      }
    });
  });
}

await describeOnRedis((server) => {
  const connections: RedisConnection[] = [];
  let admin: Redis;
  const connectTo = async (url: string): Promise<RedisConnection> => {
    const redis = connectRedis(url, 'producer', logger);
    connections.push(redis);
    await untilReady(redis, 60_000);
    return redis;
  };
  beforeAll(() => {
    admin = new Redis(server().adminUrl);
  });
  afterEach(async () => {
    await admin.flushall();
    for (const connection of connections.splice(0)) disconnectRedis(connection);
  });
  afterAll(() => admin.disconnect());

  describeFailover('Redis', { connect: () => connectTo(server().url), admins: () => [admin] });

  describe('a release that does not reach Redis', () => {
    it.each(['worker', 'API'])('of a %s is repeated until it does', async (who) => {
      await using proxy = await openTcpProxy(server().url);
      const sizes = { writes: 4 * mib, imports: 4 * mib };
      const direct = new RedisPayloadStore(await connectTo(server().url), sizes);
      const through = new RedisPayloadStore(await connectTo(proxy.url), sizes, { renewMs: 50 });
      const key = randomUUID();
      await (who === 'API' ? through : direct).put(key, chunksOf(randomBytes(mib)), options);
      proxy.refuse();
      proxy.cut();
      await expect(through.delete(key)).rejects.toThrow(UnavailableError);
      proxy.accept();
      await until(async () => (await held(direct)) === 0, 'the budget is free');
      expect(await bodyKeys([admin])).toEqual([]);
      await Promise.all([direct.close(), through.close()]);
    });
  });
});

await describeWithTools('Redis Cluster', ['redis-server'], () => {
  let group: RedisGroup;
  let admins: Redis[];
  const connections: RedisConnection[] = [];
  beforeAll(async () => {
    group = await startRedisCluster();
    admins = group.servers.map(({ port }) => new Redis({ host: '127.0.0.1', port, password: groupPassword }));
  });
  afterEach(() => {
    for (const connection of connections.splice(0)) disconnectRedis(connection);
  });
  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await group[Symbol.asyncDispose]();
  });

  const connect = async (): Promise<RedisConnection> => {
    const redis = connectRedis(group.url, 'producer', logger);
    connections.push(redis);
    await untilReady(redis, 60_000);
    return redis;
  };
  describeFailover('Redis Cluster', { connect, admins: () => admins });
});

import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { defaultBudgetTimes } from '../../src/shared/platform/payloads/in-flight-rules.ts';
import { MemoryPayloadStore } from '../../src/shared/platform/payloads/memory-payload-store.ts';
import { PayloadMissingError, PayloadTamperedError } from '../../src/shared/platform/payloads/payload-store.ts';
import { RedisPayloadStore } from '../../src/shared/platform/payloads/redis-payload-store.ts';
import {
  connectRedis,
  disconnectRedis,
  type RedisConnection,
  untilReady,
} from '../../src/shared/platform/redis/redis.ts';
import { command, type RedisGroup, startRedisCluster } from '../../testkit/redis-groups.ts';
import { chunkKey, RedisAttacker, tamperings } from '../support/redis-attacker.ts';
import { startStopwatch } from '../support/running-time.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';
import { chunksOf, mib, readAll, waitingBody } from './blob-store-suite.ts';
import { describePayloadStore, held } from './payload-store-suite.ts';
import { describeOnRedis } from './redis-under-test.ts';

/** Less than the 5 s after which a command is given up. */
const quickMs = 4_000;

const logger = createLogger({ level: 'silent' });
const sized = (bytes: number) => ({ writes: bytes, imports: bytes });

describePayloadStore(
  'memory',
  async (capacityBytes, times) => new MemoryPayloadStore(sized(capacityBytes), { ...defaultBudgetTimes, ...times }),
);

await describeOnRedis((server) => {
  const connections: Redis[] = [];
  const connect = async (): Promise<Redis> => {
    const redis = connectRedis(server().url, 'producer', logger) as Redis;
    connections.push(redis);
    await untilReady(redis, 60_000);
    return redis;
  };
  let redis: Redis;
  beforeEach(async () => {
    redis = await connect();
    await redis.flushall();
  });
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.disconnect();
  });

  describePayloadStore(
    'Redis',
    async (capacityBytes, times) => new RedisPayloadStore(await connect(), sized(capacityBytes), times),
  );

  describe('payload store in Redis', () => {
    const options = { maxBytes: 64 * mib, declaredBytes: null, budget: 'writes' } as const;

    it('lets every key expire, and stores no chunk above 512 KiB', async () => {
      const store = new RedisPayloadStore(redis, sized(64 * mib));
      const source = waitingBody(randomBytes(2 * mib));
      const done = store.put(randomUUID(), source.body, options);
      await source.waiting;
      await expectBounded(redis, 5);
      source.letGo();
      await done;
      await expectBounded(redis, 8);
      for (const key of await redis.keys('*'))
        if ((await redis.type(key)) === 'string') expect(await redis.strlen(key)).toBeLessThanOrEqual(512 * 1024 + 16);
    });

    it('stores a body without using memory of its size', async () => {
      const store = new RedisPayloadStore(redis, sized(64 * mib));
      const key = randomUUID();
      const chunk = randomBytes(64 * 1024);
      const before = process.memoryUsage().arrayBuffers;
      let most = before;
      async function* body(): AsyncGenerator<Buffer> {
        for (let sent = 0; sent < 32 * mib; sent += chunk.length) {
          most = Math.max(most, process.memoryUsage().arrayBuffers);
          yield chunk;
        }
      }
      expect((await store.put(key, body(), options)).bytes).toBe(32 * mib);
      expect(most - before).toBeLessThan(4 * mib);
      await store.delete(key);
    });

    it('leaves no key behind once the bodies are deleted', async () => {
      const store = new RedisPayloadStore(redis, sized(64 * mib));
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(2 * mib)), options);
      await store.delete(key);
      expect(await redis.keys('*')).toEqual([]);
    });

    it('can be read by other processes, which count the same usage', async () => {
      const writer = new RedisPayloadStore(redis, sized(4 * mib));
      const reader = new RedisPayloadStore(await connect(), sized(4 * mib));
      const key = randomUUID();
      const bytes = randomBytes(3 * mib);
      const { encryption } = await writer.put(key, chunksOf(bytes), { ...options, declaredBytes: bytes.length });
      expect((await readAll(reader.open(key, encryption))).equals(bytes)).toBe(true);
      expect(await held(reader)).toBe(3 * mib);
      await expect(
        reader.put(randomUUID(), chunksOf(bytes), { ...options, declaredBytes: bytes.length }),
      ).rejects.toThrow(UnavailableError);
      await reader.delete(key);
      expect(await held(writer)).toBe(0);
    });

    describe('of a process that dies', () => {
      // A busy machine may run no timer for seconds.
      const times = { lifeMs: 10_000, renewMs: 200 };
      const declared = { ...options, declaredBytes: 4 * mib };
      let store: RedisPayloadStore;
      beforeEach(async () => {
        store = new RedisPayloadStore(await connect(), sized(4 * mib));
      });

      it.each(['writes', 'imports'] as const)(
        'in the middle of %s, budget and chunks are soon released',
        async (budget) => {
          const died = new RedisPayloadStore(redis, sized(4 * mib), times);
          const source = waitingBody(randomBytes(3 * mib), randomBytes(mib));
          const abandoned = died.put(randomUUID(), source.body, { ...declared, budget });
          const lost = expect(abandoned).rejects.toMatchObject({ name: 'ReservationLostError' });
          await source.waiting;
          expect(await held(store)).toBe(3 * mib);
          await died.close();
          await until(async () => (await held(store)) === 0, 'the budget is free');
          await until(async () => (await redis.keys('holdfast:body:*')).length === 0, 'the chunks are gone');
          const key = randomUUID();
          await store.put(key, chunksOf(randomBytes(4 * mib)), { ...declared, budget });
          // Not dead after all: it must neither continue nor release what belongs to others.
          source.letGo();
          await lost;
          expect(await held(store)).toBe(4 * mib);
          await store.delete(key);
        },
      );

      it('after it has stored a body, the body is kept for its job', async () => {
        const died = new RedisPayloadStore(redis, sized(4 * mib), { ...times, jobLifeMs: 30_000 });
        const [key, bytes] = [randomUUID(), randomBytes(4 * mib)];
        const { encryption } = await died.put(key, chunksOf(bytes), declared);
        await died.close();
        const other = randomUUID();
        const dying = new RedisPayloadStore(await connect(), sized(4 * mib), times);
        const source = waitingBody(randomBytes(1000));
        void dying.put(other, source.body, { ...options, budget: 'imports' }).catch(() => {});
        await source.waiting;
        await dying.close();
        await until(async () => (await held(store)) === 4 * mib, 'the other one is forgotten');
        expect((await readAll(store.open(key, encryption))).equals(bytes)).toBe(true);
        await until(async () => (await held(store)) === 0, 'its job has had its time');
        await expect(readAll(store.open(key, encryption))).rejects.toThrow(PayloadMissingError);
        source.letGo();
      });

      it('nothing is lost when the process is slow but alive', async () => {
        const slow = new RedisPayloadStore(redis, sized(4 * mib), { lifeMs: 10_000, renewMs: 100 });
        const [head, tail] = [randomBytes(2 * mib), randomBytes(mib)];
        const source = waitingBody(head, tail);
        const key = randomUUID();
        const done = slow.put(key, source.body, options);
        await source.waiting;
        const dying = new RedisPayloadStore(await connect(), sized(4 * mib), { lifeMs: 15_000 });
        const other = waitingBody(randomBytes(1000));
        void dying.put(randomUUID(), other.body, { ...options, budget: 'imports' }).catch(() => {});
        await other.waiting;
        await dying.close();
        await until(async () => (await held(store)) === 2 * mib, 'the other one is forgotten');
        source.letGo();
        const { encryption } = await done;
        expect((await readAll(store.open(key, encryption))).equals(Buffer.concat([head, tail]))).toBe(true);
        await slow.delete(key);
        other.letGo();
      });
    });

    it('counts a body only while it is stored, whoever deletes it', async () => {
      const store = new RedisPayloadStore(redis, sized(4 * mib), { renewMs: 50 });
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(mib)), options);
      await redis.del(...(await redis.keys('holdfast:body:*')));
      await until(async () => (await held(store)) === 0, 'the budget is free');
    });

    it('releases the budget of a body that was abandoned while Redis was away', async () => {
      await using proxy = await openTcpProxy(server().url);
      const through = connectRedis(proxy.url, 'producer', logger) as Redis;
      connections.push(through);
      await untilReady(through, 60_000);
      const store = new RedisPayloadStore(through, sized(4 * mib), { renewMs: 50 });
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(mib)), options);
      proxy.refuse();
      proxy.cut();
      await expect(store.delete(key)).rejects.toThrow(UnavailableError);
      proxy.accept();
      const other = new RedisPayloadStore(redis, sized(4 * mib));
      await until(async () => (await held(other)) === 0, 'the budget is free');
      expect(await redis.keys('holdfast:body:*')).toEqual([]);
      await store.close();
    });

    it('counts from zero after Redis lost all data', async () => {
      const store = new RedisPayloadStore(redis, sized(4 * mib));
      const key = randomUUID();
      const { encryption } = await store.put(key, chunksOf(randomBytes(3 * mib)), options);
      await redis.flushall();
      await expect(readAll(store.open(key, encryption))).rejects.toThrow(PayloadMissingError);
      await store.delete(key);
      expect(await held(store)).toBe(0);
    });

    describe('with an attacker who can write to Redis', () => {
      let attacker: RedisAttacker;
      let store: RedisPayloadStore;
      const [key, other] = ['honest', 'another'];
      const bytes = randomBytes(2 * mib);
      beforeEach(() => {
        attacker = new RedisAttacker(server().adminUrl);
        store = new RedisPayloadStore(redis, sized(64 * mib));
      });
      afterEach(() => attacker.close());

      it.each(Object.keys(tamperings))('returns no byte of %s', async (name) => {
        const { encryption } = await store.put(key, chunksOf(bytes), options);
        await tamperings[name]?.(attacker, key);
        const before = process.memoryUsage().arrayBuffers;
        let at = 0;
        const read = async (): Promise<void> => {
          for await (const chunk of store.open(key, encryption)) {
            expect(chunk.equals(bytes.subarray(at, at + chunk.length))).toBe(true);
            at += chunk.length;
          }
        };
        await expect(read()).rejects.toThrow(PayloadTamperedError);
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * mib);
        await store.delete(key);
      });

      it('does not decrypt under another name, with the key of another body, or with more or fewer chunks', async () => {
        const { encryption } = await store.put(key, chunksOf(bytes), options);
        const { encryption: another } = await store.put(other, chunksOf(bytes), options);
        if (!encryption || !another) throw new Error('not encrypted');
        const attempts = [
          store.open(key, another),
          store.open(key, { ...encryption, chunks: encryption.chunks - 1 }),
          store.open(key, { ...encryption, bytes: encryption.bytes - 1 }),
        ];
        for (const attempt of attempts) await expect(readAll(attempt)).rejects.toThrow(PayloadTamperedError);
        await attacker.setChunk(other, 0, await attacker.chunk(key, 0));
        await expect(readAll(store.open(other, encryption))).rejects.toThrow(PayloadTamperedError);
        expect((await readAll(store.open(key, encryption))).equals(bytes)).toBe(true);
        await Promise.all([store.delete(key), store.delete(other)]);
      });

      it('does not let them read bodies', async () => {
        const text = Buffer.from('a value of the state '.repeat(100));
        await store.put(key, chunksOf(text), options);
        expect((await attacker.redis.getBuffer(chunkKey(key, 0)))?.includes('value')).toBe(false);
        await store.delete(key);
      });

      it.each(['99999999999 1 writes', '65535 9 writes', 'x'.repeat(1_000_000), '', '1', '-1 -1 imports'])(
        'treats stored metadata of a body as a hint: %.30s',
        async (text) => {
          const { encryption } = await store.put(key, chunksOf(bytes), options);
          await attacker.redis.set(`holdfast:body:${key}`, text);
          expect((await readAll(store.open(key, encryption))).equals(bytes)).toBe(true);
          await store.delete(key);
        },
      );
    });

    it('reports a body as missing, not as cut short, when a chunk was lost', async () => {
      const store = new RedisPayloadStore(redis, sized(64 * mib));
      const key = randomUUID();
      const { encryption } = await store.put(key, chunksOf(randomBytes(2 * mib)), options);
      await redis.del(`holdfast:body:${key}:2`);
      await expect(readAll(store.open(key, encryption))).rejects.toThrow(PayloadMissingError);
      await store.delete(key);
    });
  });

  describe('payload store while Redis is away', () => {
    let store: RedisPayloadStore;
    const options = { maxBytes: 64 * mib, declaredBytes: 10, budget: 'writes' } as const;
    beforeEach(() => {
      store = new RedisPayloadStore(redis, sized(64 * mib));
    });

    it.each(['put', 'put that may wait', 'open', 'delete', 'check'] as const)(
      '%s is rejected at once when Redis is down, and works when it is back',
      async (call) => {
        await server().kill();
        try {
          expect(await timed(() => callOf(store, call))).toMatchObject({ name: 'UnavailableError', quick: true });
        } finally {
          await server().restart();
        }
        await untilReady(redis, 60_000);
        await store.check(60_000);
      },
    );

    it.each(['put', 'open', 'delete'] as const)('%s ends within seconds when Redis hangs', async (call) => {
      const server_ = server();
      server_.pause();
      try {
        const { name, ms } = await timed(() => callOf(store, call));
        expect(name).toBe('UnavailableError');
        expect(ms).toBeLessThan(15_000);
      } finally {
        server_.resume();
      }
    });

    it('a check keeps its limit when Redis hangs', async () => {
      server().pause();
      try {
        const { name, ms } = await timed(() => store.check(500));
        expect([name, ms < quickMs]).toEqual(['UnavailableError', true]);
      } finally {
        server().resume();
      }
    });

    it('a put during which Redis goes away is rejected and leaves no budget in use', async () => {
      const source = waitingBody(randomBytes(mib), randomBytes(mib));
      const done = store.put(randomUUID(), source.body, { ...options, declaredBytes: 2 * mib });
      await source.waiting;
      const outcome = timed(() => done);
      await server().kill();
      source.letGo();
      try {
        expect(await outcome).toMatchObject({ name: 'UnavailableError' });
      } finally {
        await server().restart();
      }
      await untilReady(redis, 60_000);
      expect(await held(store)).toBe(0);
    });

    function callOf(on: RedisPayloadStore, call: string): Promise<unknown> {
      const body = chunksOf(randomBytes(10));
      if (call === 'put') return on.put(randomUUID(), body, options);
      if (call === 'put that may wait') return on.put(randomUUID(), body, { ...options, budget: 'imports' });
      if (call === 'open') return readAll(on.open(randomUUID(), { key: randomBytes(32), chunks: 1, bytes: 10 }));
      if (call === 'delete') return on.delete(randomUUID());
      return on.check(500);
    }
  });
});

/** How the call failed, with similar errors under one name, and after how long; quick is within `quickMs`. */
async function timed(call: () => Promise<unknown>): Promise<{ name: string; ms: number; quick: boolean }> {
  const elapsedMs = startStopwatch();
  const name = await call().then(
    () => 'success',
    (error: Error) => (error instanceof UnavailableError ? 'UnavailableError' : error.name),
  );
  const ms = elapsedMs();
  return { name, ms, quick: ms < quickMs };
}

async function expectBounded(redis: Redis, keys: number): Promise<void> {
  const names = await redis.keys('*');
  expect(names).toHaveLength(keys);
  for (const name of names) {
    const seconds = await redis.ttl(name);
    expect({ name, bounded: seconds > 0 && seconds <= 3600 }).toEqual({ name, bounded: true });
  }
}

await describeWithTools('Redis Cluster', ['redis-server'], () => {
  let group: RedisGroup;
  const connections: RedisConnection[] = [];
  beforeAll(async () => {
    group = await startRedisCluster();
  });
  afterAll(() => group[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const connection of connections.splice(0)) disconnectRedis(connection);
    await Promise.all(group.servers.map(({ port }) => command(port, ['FLUSHALL'])));
  });

  describePayloadStore('Redis Cluster', async (capacityBytes, times) => {
    const redis = connectRedis(group.url, 'producer', logger);
    connections.push(redis);
    await untilReady(redis, 60_000);
    return new RedisPayloadStore(redis, sized(capacityBytes), times);
  });
});

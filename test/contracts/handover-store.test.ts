import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { HandoverMissingError } from '../../src/shared/platform/queue/handover-store.ts';
import { MemoryHandoverStore } from '../../src/shared/platform/queue/memory-handover-store.ts';
import { connectRedis, untilReady } from '../../src/shared/platform/queue/redis.ts';
import { RedisHandoverStore } from '../../src/shared/platform/queue/redis-handover-store.ts';
import { chunksOf, mib, readAll, waitingBody } from './blob-store-suite.ts';
import { describeHandoverStore, held } from './handover-suite.ts';
import { describeOnRedis } from './redis-under-test.ts';

const logger = createLogger({ level: 'silent' });
const heldKey = 'holdfast:body:held';
const expiriesKey = 'holdfast:body:expiries';

describeHandoverStore('memory', async (capacityBytes) => new MemoryHandoverStore(capacityBytes));

await describeOnRedis((server) => {
  const connections: Redis[] = [];
  const connect = async (): Promise<Redis> => {
    const redis = connectRedis(server().url, 'producer', logger);
    connections.push(redis);
    await untilReady(redis, 5_000);
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

  describeHandoverStore('Redis', async (capacityBytes) => new RedisHandoverStore(await connect(), capacityBytes));

  describe('hand-over through Redis', () => {
    const options = { maxBytes: 64 * mib, declaredBytes: null, wait: false };

    it('keeps no key for ever, and no piece above 512 KiB', async () => {
      const store = new RedisHandoverStore(redis, 64 * mib);
      const source = waitingBody(randomBytes(2 * mib));
      const done = store.put(randomUUID(), source.body, options);
      await source.waiting;
      await expectBounded(redis, 6);
      source.letGo();
      await done;
      await expectBounded(redis, 7);
      for (const key of await redis.keys('*'))
        if ((await redis.type(key)) === 'string') expect(await redis.strlen(key)).toBeLessThanOrEqual(512 * 1024);
    });

    it('takes a body in without memory in the size of the body', async () => {
      const store = new RedisHandoverStore(redis, 64 * mib);
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
      expect(await store.put(key, body(), options)).toEqual({ bytes: 32 * mib });
      expect(most - before).toBeLessThan(4 * mib);
      await store.delete(key);
    });

    it('leaves no key behind once the bodies are gone', async () => {
      const store = new RedisHandoverStore(redis, 64 * mib);
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(2 * mib)), options);
      await store.delete(key);
      expect((await redis.keys('*')).filter((name) => name !== heldKey)).toEqual([]);
      expect(await redis.get(heldKey)).toBe('0');
    });

    it('is read by other processes, which count the same', async () => {
      const writer = new RedisHandoverStore(redis, 4 * mib);
      const reader = new RedisHandoverStore(await connect(), 4 * mib);
      const key = randomUUID();
      const bytes = randomBytes(3 * mib);
      await writer.put(key, chunksOf(bytes), { ...options, declaredBytes: bytes.length });
      expect((await readAll(reader.open(key))).equals(bytes)).toBe(true);
      expect(await held(reader)).toBe(3 * mib);
      await expect(
        reader.put(randomUUID(), chunksOf(bytes), { ...options, declaredBytes: bytes.length }),
      ).rejects.toThrow(UnavailableError);
      await reader.delete(key);
      expect(await held(writer)).toBe(0);
    });

    it('gives back the room of processes that died, once their time is over', async () => {
      const died = new RedisHandoverStore(await connect(), 4 * mib);
      const source = waitingBody(randomBytes(mib));
      const abandoned = died.put(randomUUID(), source.body, { ...options, declaredBytes: 4 * mib });
      await source.waiting;
      const store = new RedisHandoverStore(redis, 4 * mib);
      const put = () => store.put(randomUUID(), chunksOf(randomBytes(mib)), { ...options, declaredBytes: mib });
      await expect(put()).rejects.toThrow(UnavailableError);
      const [member] = (await redis.zrange(expiriesKey, 0, -1)) as [string];
      await redis.zadd(expiriesKey, Date.now() - 1, member);
      await put();
      expect(await held(store)).toBe(mib);
      // Not dead after all: what it ends with must not be given back twice.
      source.letGo();
      await abandoned.catch(() => {});
      expect(await held(store)).toBe(mib);
    });

    it('counts from nothing after Redis lost everything', async () => {
      const store = new RedisHandoverStore(redis, 4 * mib);
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(3 * mib)), options);
      await redis.flushall();
      await expect(readAll(store.open(key))).rejects.toThrow(HandoverMissingError);
      await store.delete(key);
      expect(await held(store)).toBe(0);
    });

    it('is missing, not cut short, when a piece was lost', async () => {
      const store = new RedisHandoverStore(redis, 64 * mib);
      const key = randomUUID();
      await store.put(key, chunksOf(randomBytes(2 * mib)), options);
      await redis.del(`holdfast:body:${key}:2`);
      await expect(readAll(store.open(key))).rejects.toThrow(HandoverMissingError);
      await store.delete(key);
    });
  });

  describe('hand-over while Redis is away', () => {
    let store: RedisHandoverStore;
    const options = { maxBytes: 64 * mib, declaredBytes: 10, wait: false };
    beforeEach(() => {
      store = new RedisHandoverStore(redis, 64 * mib);
    });

    it.each(['put', 'put that may wait', 'open', 'delete', 'check'] as const)(
      '%s is refused at once when Redis is down, and works when it is back',
      async (call) => {
        await server().kill();
        try {
          expect(await timed(() => callOf(store, call))).toMatchObject({ name: 'UnavailableError', quick: true });
        } finally {
          await server().restart();
        }
        await untilReady(redis, 5_000);
        await store.check(1_000);
      },
      20_000,
    );

    it.each(['put', 'open', 'delete'] as const)(
      '%s ends within seconds when Redis hangs',
      async (call) => {
        const server_ = server();
        server_.pause();
        try {
          const { name, ms } = await timed(() => callOf(store, call));
          expect(name).toBe('UnavailableError');
          expect(ms).toBeLessThan(15_000);
        } finally {
          server_.resume();
        }
      },
      20_000,
    );

    it('a check keeps its limit when Redis hangs', async () => {
      server().pause();
      try {
        const { name, ms } = await timed(() => store.check(500));
        expect([name, ms < 1_000]).toEqual(['UnavailableError', true]);
      } finally {
        server().resume();
      }
    }, 20_000);

    it('a put during which Redis goes is refused, and leaves no room taken', async () => {
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
      await untilReady(redis, 5_000);
      expect(await held(store)).toBe(0);
    }, 20_000);

    function callOf(on: RedisHandoverStore, call: string): Promise<unknown> {
      const body = chunksOf(randomBytes(10));
      if (call === 'put') return on.put(randomUUID(), body, options);
      if (call === 'put that may wait') return on.put(randomUUID(), body, { ...options, wait: true });
      if (call === 'open') return readAll(on.open(randomUUID()));
      if (call === 'delete') return on.delete(randomUUID());
      return on.check(500);
    }
  });
});

/** How the call failed, and after how long; quick is within a second. */
async function timed(call: () => Promise<unknown>): Promise<{ name: string; ms: number; quick: boolean }> {
  const startedAt = performance.now();
  const name = await call().then(
    () => 'success',
    (error: Error) => error.name,
  );
  const ms = performance.now() - startedAt;
  return { name, ms, quick: ms < 1_000 };
}

async function expectBounded(redis: Redis, keys: number): Promise<void> {
  const names = await redis.keys('*');
  expect(names).toHaveLength(keys);
  for (const name of names) {
    const seconds = await redis.ttl(name);
    expect({ name, bounded: seconds > 0 && seconds <= 3600 }).toEqual({ name, bounded: true });
  }
}

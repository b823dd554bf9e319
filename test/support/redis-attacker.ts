import { randomBytes, randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';

const chunkBytes = 512 * 1024 + 16;

/** May do everything in Redis and has no other access. */
export class RedisAttacker {
  readonly redis: Redis;
  readonly queue: Queue;

  constructor(url: string, options: RedisOptions = {}) {
    this.redis = new Redis(url, { maxRetriesPerRequest: null, ...options });
    this.redis.on('error', () => {});
    this.queue = new Queue('writes-small', { connection: this.redis, prefix: 'holdfast' });
    this.queue.on('error', () => {});
  }

  /** Adds a job with the options that a trusting server would use. */
  async forge(name: string, data: object, jobId: string = randomUUID()): Promise<string> {
    await this.queue.add(name, { replyTo: `holdfast:done:${randomUUID()}`, ...data }, { jobId, attempts: 1 });
    return jobId;
  }

  /** Where a worker would look for the body. */
  async plant(body: Buffer, key: string = randomUUID()): Promise<string> {
    const chunks = Math.ceil(body.length / chunkBytes);
    for (let at = 0; at < chunks; at++)
      await this.redis.set(chunkKey(key, at), body.subarray(at * chunkBytes, (at + 1) * chunkBytes));
    await this.redis.set(`holdfast:body:${key}`, `${chunks} ${body.length} imports`);
    return key;
  }

  /** Keys of the complete bodies. */
  async bodies(): Promise<string[]> {
    const names = await this.redis.keys('holdfast:body:*');
    return names.flatMap((name) => /^holdfast:body:([^:]+)$/.exec(name)?.[1] ?? []).sort();
  }

  async chunk(key: string, at: number): Promise<Buffer> {
    const chunk = await this.redis.getBuffer(chunkKey(key, at));
    if (!chunk) throw new Error(`There is no chunk ${at} of ${key}`);
    return chunk;
  }

  async setChunk(key: string, at: number, chunk: Buffer): Promise<void> {
    await this.redis.set(chunkKey(key, at), chunk, 'KEEPTTL');
  }

  /** Ids of the jobs that wait for a worker. */
  async waiting(): Promise<string[]> {
    const jobs = await this.queue.getJobs(['wait', 'prioritized', 'delayed']);
    return jobs.flatMap((job) => job?.id ?? []);
  }

  /** Whether the job has ended, successfully or not. */
  async isOver(jobId: string): Promise<boolean> {
    return ['failed', 'completed', 'unknown'].includes(await this.queue.getJobState(jobId));
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
  }
}

export const chunkKey = (key: string, at: number): string => `holdfast:body:${key}:${at}`;

/** Ways to tamper with a body of several chunks. */
export const tamperings: Readonly<Record<string, (attacker: RedisAttacker, key: string) => Promise<void>>> = {
  'a bit changed': async (attacker, key) => {
    const chunk = await attacker.chunk(key, 1);
    chunk[1000] = (chunk[1000] as number) ^ 1;
    await attacker.setChunk(key, 1, chunk);
  },
  'a chunk cut short': async (attacker, key) =>
    attacker.setChunk(key, 1, (await attacker.chunk(key, 1)).subarray(0, -100)),
  'a chunk made longer': async (attacker, key) =>
    attacker.setChunk(key, 0, Buffer.concat([await attacker.chunk(key, 0), randomBytes(100)])),
  'a chunk of a hundred megabytes, or as large as Redis accepts': async (attacker, key) => {
    const grow = (bytes: number) => attacker.redis.setrange(chunkKey(key, 0), bytes, 'x');
    await grow(100_000_000).catch((error: Error) => {
      // deploy/redis/start.sh limits values to 1 MiB.
      if (!error.message.includes('proto-max-bulk-len')) throw error;
      return grow(1_048_000);
    });
  },
  'two chunks swapped': async (attacker, key) => {
    const [first, second] = [await attacker.chunk(key, 0), await attacker.chunk(key, 1)];
    await attacker.setChunk(key, 0, second);
    await attacker.setChunk(key, 1, first);
  },
  'a chunk in place of another': async (attacker, key) => attacker.setChunk(key, 1, await attacker.chunk(key, 0)),
  'a chunk that is not text': async (attacker, key) => {
    await attacker.redis.del(chunkKey(key, 1));
    await attacker.redis.rpush(chunkKey(key, 1), 'one', 'two');
  },
  'a body of its own in place': async (attacker, key) => {
    await attacker.plant(Buffer.from('{"version":3,"deployment":{"resources":[]}}'), key);
  },
};

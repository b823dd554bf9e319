import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../../testkit/cluster.ts';
import { RedisAttacker, tamperings } from '../../support/redis-attacker.ts';
import { query } from './audit.ts';
import { documentOf } from './documents.ts';

const connection = { maxRetriesPerRequest: 0, connectTimeout: 1_000, commandTimeout: 2_000, retryStrategy: () => null };
const readyMs = 2_000;
const limitMs = 6_000;

/** Tampers with pending bodies and jobs, and adds some. Returns false when Redis was unreachable. */
export async function attackAtRandom(cluster: Cluster, random: () => number): Promise<boolean> {
  const attacker = new RedisAttacker(cluster.redisUrl, connection);
  const within = (work: Promise<unknown>, ms: number): Promise<boolean> =>
    Promise.race([
      work.then(
        () => true,
        () => false,
      ),
      sleep(ms, false, { ref: false }),
    ]);
  try {
    if (!(await within(attacker.queue.waitUntilReady(), readyMs))) return false;
    // Redis may go away during this.
    await within(attack(cluster, attacker, random), limitMs);
    return true;
  } finally {
    attacker.redis.disconnect();
  }
}

async function attack(cluster: Cluster, attacker: RedisAttacker, random: () => number): Promise<void> {
  const pick = <T>(choices: readonly T[]): T | undefined => choices[Math.floor(random() * choices.length)];
  const quietly = async (work: () => Promise<unknown>): Promise<void> => {
    await work().catch(() => {});
  };
  const kinds = ['active', 'wait', 'prioritized', 'completed', 'failed'] as const;
  for (let round = 0; round < 5; round++) {
    await quietly(async () => {
      const [stack] = await query<{ id: string; version: number; checkpoint: string | null; user: string }>(
        cluster,
        `select id, stack_version as version, checkpoint_id as checkpoint, (select id from users limit 1) as user
         from stacks where deleted_at is null order by random() limit 1`,
      );
      if (!stack) return;
      const payloadKey = await attacker.plant(documentOf(2_000, `forged ${randomUUID()}`));
      const admission = {
        stackVersion: stack.version,
        checkpointId: stack.checkpoint,
        deadline: new Date(Date.now() + 60_000).toISOString(),
      };
      const ids = { stackId: stack.id, updateId: randomUUID(), requestedBy: stack.user };
      const job = { name: 'import-deployment', schema: 2, ...ids, admission, payloadKey, encoding: 'identity' };
      await attacker.forge(job.name, { job });
    });
    await quietly(async () => {
      const jobs = (await attacker.queue.getJobs([...kinds], 0, 50)).filter(Boolean);
      const [one, other, done] = [pick(jobs), pick(jobs), pick(jobs.filter(({ finishedOn }) => finishedOn))];
      if (one && other) {
        const records = [one, other].map(({ id }) => `holdfast:writes-small:${id}`) as [string, string];
        const data = (await Promise.all(records.map((record) => attacker.redis.hget(record, 'data')))) as [
          string,
          string,
        ];
        await attacker.redis.hset(records[0], 'data', data[1], 'name', other.name);
        await attacker.redis.hset(records[1], 'data', data[0], 'name', one.name);
        await attacker.forge(one.name, one.data as object);
      }
      if (done?.id) {
        await done.remove();
        await attacker.forge(done.name, done.data as object, done.id);
      }
      for (const channel of (await attacker.redis.pubsub('CHANNELS', 'holdfast:done:*')) as string[])
        for (const { id } of jobs)
          await attacker.redis.publish(channel, JSON.stringify({ jobId: id, result: 'settled' }));
    });
    await quietly(async () => {
      const bodies = await attacker.bodies();
      const [key, other] = [pick(bodies), pick(bodies)];
      if (!key || !other) return;
      const [chunk, another] = [await attacker.chunk(key, 0), await attacker.chunk(other, 0)];
      await attacker.setChunk(key, 0, random() < 0.5 ? another : chunk.subarray(0, Math.floor(chunk.length / 2)));
      await pick(Object.values(tamperings))?.(attacker, pick(bodies) as string);
    });
  }
}

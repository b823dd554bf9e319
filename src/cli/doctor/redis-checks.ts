import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../shared/platform/config/config.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import {
  connectRedis,
  disconnectRedis,
  isCluster,
  type RedisConnection,
  untilStarted,
} from '../../shared/platform/redis/redis.ts';
import { type Check, fail, type Outcome, ok, sentenceOf, warn } from './check.ts';
import type { Visit } from './visit.ts';

const pings = 20;
const pingPauseMs = 20;
const okPingMs = 20;
/** The memory that Redis needs in addition to the bodies in flight. */
const spareBytes = 256 * 1024 * 1024;

/** The checks of Redis; none without HOLDFAST_REDIS_URL. */
export function redisChecks({ closing, config }: Visit): Check[] {
  const { redisUrl } = config;
  if (redisUrl === null) return [];
  let connecting: Promise<RedisConnection> | undefined;
  const connect = (): Promise<RedisConnection> => {
    connecting ??= open(redisUrl, closing);
    return connecting;
  };
  const within = (work: (redis: RedisConnection) => Promise<Outcome>) => async (): Promise<Outcome> => {
    const redis = await connect().catch(() => null);
    return redis && work(redis);
  };
  return [
    { name: 'redis', run: () => reach(connect) },
    { name: 'redis-policy', run: within((redis) => checkPolicy(redis, config)) },
    { name: 'redis-persistence', run: within(checkPersistence) },
    { name: 'redis-latency', run: within(checkLatency) },
  ];
}

async function open(url: string, closing: Visit['closing']): Promise<RedisConnection> {
  const logger = createLogger({ level: 'silent' }, { write: () => {} });
  const redis = connectRedis(url, 'producer', logger);
  closing(async () => disconnectRedis(redis));
  await untilStarted(redis, url, { waitMs: 0, logger });
  return redis;
}

async function reach(connect: () => Promise<RedisConnection>): Promise<Outcome> {
  let redis: RedisConnection;
  try {
    redis = await connect();
  } catch (error) {
    return fail(sentenceOf(error), 'Start Redis, or correct the user and password in HOLDFAST_REDIS_URL.');
  }
  const key = `holdfast:doctor:${randomBytes(8).toString('hex')}`;
  try {
    await redis.set(key, 'x', 'EX', 10);
    if ((await redis.get(key)) !== 'x')
      return fail('Redis does not return what it has stored.', 'Point HOLDFAST_REDIS_URL at one Redis.');
    await redis.del(key);
  } catch (error) {
    return fail(
      `Redis refuses to store a key: ${sentenceOf(error)}`,
      'Give the user in HOLDFAST_REDIS_URL the permissions in deploy/redis/start.sh, and Redis free memory.',
    );
  }
  const version = (await infoOf(redis, 'server')).map((text) => fieldOf(text, 'redis_version') ?? 'unknown');
  return ok(`Redis ${[...new Set(version)].join(', ')} answers${isCluster(redis) ? ' as a cluster' : ''}.`);
}

async function checkPolicy(redis: RedisConnection, { limits }: Config): Promise<Outcome> {
  const infos = await infoOf(redis, 'memory');
  const policies = infos.map((text) => fieldOf(text, 'maxmemory_policy')).filter((policy) => policy !== undefined);
  const other = policies.find((policy) => policy !== 'noeviction');
  if (other !== undefined)
    return fail(
      `Redis has maxmemory-policy ${other}: it would drop jobs when its memory is full.`,
      'Set maxmemory-policy to noeviction.',
    );
  if (policies.length === 0)
    return warn('Redis does not report its maxmemory-policy.', 'Set maxmemory-policy to noeviction.');
  const least = 1.5 * limits.redisInFlight.writes + spareBytes;
  const maxima = infos.map((text) => Number(fieldOf(text, 'maxmemory') ?? 0)).filter((bytes) => bytes > 0);
  const total = maxima.reduce((sum, bytes) => sum + bytes, 0);
  return maxima.length > 0 && total < least
    ? warn(
        `Redis has the policy noeviction, and a maxmemory of ${total} bytes.`,
        `Set maxmemory to ${least} bytes, or lower HOLDFAST_REDIS_IN_FLIGHT_BYTES.`,
      )
    : ok('Redis has the policy noeviction.');
}

async function checkPersistence(redis: RedisConnection): Promise<Outcome> {
  const isOn = (await infoOf(redis, 'persistence')).some((text) => fieldOf(text, 'aof_enabled') === '1');
  // A restricted user may not read the setting.
  const save = isCluster(redis) ? null : await redis.config('GET', 'save').catch(() => null);
  const snapshots = Array.isArray(save) ? String(save[1] ?? '') : '';
  return isOn || snapshots !== ''
    ? warn('Redis writes its data to disk.', 'Turn persistence off (`save ""`, `appendonly no`): jobs need none.')
    : ok('Redis does not report that it writes to disk.');
}

async function checkLatency(redis: RedisConnection): Promise<Outcome> {
  let best = Number.POSITIVE_INFINITY;
  // The shortest time counts, because this machine may be busy.
  for (let ping = 0; ping < pings && best > okPingMs; ping++) {
    const begun = performance.now();
    await redis.time();
    best = Math.min(best, performance.now() - begun);
    await sleep(pingPauseMs);
  }
  const seen = `Redis answers within ${best.toFixed(1)} ms.`;
  return best > okPingMs ? warn(seen, 'Move Redis nearer to API replicas and workers, or give it more CPU.') : ok(seen);
}

function infoOf(redis: RedisConnection, section: string): Promise<string[]> {
  return Promise.all((isCluster(redis) ? redis.nodes('master') : [redis]).map((server) => server.info(section)));
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
}

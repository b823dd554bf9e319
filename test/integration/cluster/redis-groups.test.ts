import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger } from '../../../src/shared/platform/logger/logger.ts';
import { connectRedis, disconnectRedis, untilStarted } from '../../../src/shared/platform/redis/redis.ts';
import {
  command,
  type RedisGroup,
  type RedisMember,
  sentinelPassword,
  startRedisCluster,
  startRedisWithSentinels,
  untilClusterWorks,
  watchWrittenKeys,
} from '../../../testkit/redis-groups.ts';
import { createTestAuthority } from '../../support/certificates.ts';
import { startAppsOn } from '../../support/cluster-app.ts';
import { exportState } from '../../support/stack-state.ts';
import { createStack, deployment, ok, type TestStack } from '../../support/state.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

const settings = { HOLDFAST_INLINE_BYTES: '1024', largeBytes: 1_000_000, jobWaitSeconds: 30 };

/** Fails unless a process that starts with this URL gives up and says why. */
async function expectRefusal(url: string, said: string): Promise<void> {
  const logger = createLogger({ level: 'silent' });
  const redis = connectRedis(url, 'producer', logger);
  try {
    await expect(untilStarted(redis, url, { waitMs: 1_000, logger })).rejects.toThrow(said);
  } finally {
    disconnectRedis(redis);
  }
}

/** About 200 bytes a resource. */
const importState = (app: TestApp, stack: TestStack, count: number, note: string) =>
  app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(count, note) });

async function noteOf(app: TestApp, stack: TestStack): Promise<number> {
  const { json } = await exportState(app, stack);
  return Number(/^round (\d+) /.exec(json.deployment.resources?.[0]?.inputs.input ?? '')?.[1] ?? -1);
}

/** Writes to a stack until it is stopped. `check` fails unless the newest acknowledged write, or a later one, is there. */
function writeOn(app: TestApp, stack: TestStack) {
  const metrics = { sent: 0, acknowledged: -1, rounds: 0, refused: 0 };
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      const round = metrics.sent++;
      // Every third write goes to the large queue, in several chunks.
      const { status } = await importState(app, stack, round % 3 === 0 ? 6_000 : 20, `round ${round} `);
      expect([200, 503]).toContain(status);
      if (status === 503) metrics.refused++;
      else {
        metrics.acknowledged = round;
        metrics.rounds++;
      }
    }
  })();
  const stop = (): Promise<void> => {
    isOver = true;
    return done;
  };
  const check = async (): Promise<void> => {
    const found = await noteOf(app, stack);
    expect(found).toBeGreaterThanOrEqual(metrics.acknowledged);
    expect(found).toBeLessThan(metrics.sent);
  };
  return { metrics, stop, check };
}

/** Runs `disturb` while two stacks are written to, and waits until both are again. */
async function writeThrough(app: TestApp, disturb: () => Promise<void>): Promise<void> {
  const writers = [writeOn(app, await createStack(app)), writeOn(app, await createStack(app))];
  const goOn = async (rounds: number): Promise<void> => {
    const goals = writers.map(({ metrics }) => metrics.rounds + rounds);
    const hasMoved = (): boolean => writers.every(({ metrics }, at) => metrics.rounds >= (goals[at] as number));
    await until(hasMoved, 'writes are acknowledged');
  };
  try {
    await goOn(2);
    await disturb();
    await goOn(3);
  } finally {
    await Promise.all(writers.map(({ stop }) => stop()));
  }
  await Promise.all(writers.map(({ check }) => check()));
}

await describeWithTools('Redis with sentinels', ['redis-server'], () => {
  let group: RedisGroup;
  let app: TestApp;
  beforeAll(async () => {
    group = await startRedisWithSentinels();
    startAppsOn(group.url, settings);
    app = await createTestApp();
  });
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]();
    await group?.[Symbol.asyncDispose]();
  });

  const sentinel = (...words: string[]): Promise<string> =>
    command((group.sentinels[0] as RedisMember).port, ['SENTINEL', ...words], sentinelPassword);
  const master = async (): Promise<RedisMember> => {
    const port = Number((await sentinel('GET-MASTER-ADDR-BY-NAME', 'main')).split(',')[1]);
    return group.servers.find((server) => server.port === port) as RedisMember;
  };
  const untilReplaced = (old: RedisMember): Promise<void> =>
    until(async () => (await master()) !== old, 'another server is the master');
  const untilFollowed = (): Promise<void> =>
    until(
      async () => /role:master.*state=online/s.test(await command((await master()).port, ['INFO', 'replication'])),
      'the master has a replica',
    );

  test.each([
    ['wrong password', () => group.url.replace('holdfast:for%20holdfast@', 'holdfast:wrong@'), 'WRONGPASS'],
    ['wrong password for the sentinels', () => group.url.replace('for%20sentinels', 'wrong'), 'WRONGPASS'],
    ['master that the sentinels do not know', () => group.url.replace('/main', '/other'), 'No such master'],
  ])('a %s is named when a process starts', (_what, url, said) => expectRefusal(url(), said));

  test('a master that is asked to step down in the middle of writes', async () => {
    await untilFollowed();
    const old = await master();
    await writeThrough(app, async () => {
      await until(async () => (await sentinel('FAILOVER', 'main').catch(() => '')) === 'OK', 'the failover begins');
      await untilReplaced(old);
    });
  });

  test('a master that hangs in the middle of writes', async () => {
    await untilFollowed();
    const old = await master();
    await writeThrough(app, async () => {
      old.pause();
      await untilReplaced(old);
    });
    old.resume();
    expect((await ok(app.call('GET', '/readyz'))).json.queue).toBe('ok');
  });
});

await describeWithTools('Redis with sentinels over TLS', ['redis-server'], () => {
  test('a write passes through, and without the authority a process does not start', async () => {
    await using authority = await createTestAuthority();
    const files = await authority.issue('redis', 'IP:127.0.0.1');
    await using group = await startRedisWithSentinels({ ...files, caFile: authority.caFile });
    startAppsOn(group.url, settings);
    await using app = await createTestApp();
    const stack = await createStack(app);
    await ok(importState(app, stack, 3_000, 'round 1 '));
    expect(await noteOf(app, stack)).toBe(1);
    await expectRefusal(group.url.replace(/&sslrootcert=.*/, ''), 'All sentinels are unreachable');
  });
});

await describeWithTools('Redis Cluster', ['redis-server'], () => {
  let group: RedisGroup;
  let app: TestApp;
  beforeAll(async () => {
    group = await startRedisCluster();
    startAppsOn(group.url, settings);
    app = await createTestApp();
  });
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]();
    await group?.[Symbol.asyncDispose]();
  });

  test('a wrong password is named when a process starts', () =>
    expectRefusal(group.url.replace('holdfast:for%20holdfast@', 'holdfast:wrong@'), 'WRONGPASS'));

  const keysOf = async ({ port }: RedisMember): Promise<string[]> =>
    (await command(port, ['KEYS', '*'])).split(',').filter((key) => key !== '');

  test('writes of all sizes, by many at once, use all servers, and only names that begin as ours', async () => {
    const stacks = await Promise.all(Array.from({ length: 3 }, () => createStack(app)));
    await using watched = await watchWrittenKeys(group.servers);
    const holdsBody = (keys: Set<string>): boolean => [...keys].some((key) => key.startsWith('holdfast:body:{'));
    // Chance decides which server gets a body, so small writes follow until all have had one.
    for (let round = 0; round < 3 || !watched.keys.every(holdsBody); round++) {
      expect(round).toBeLessThan(50);
      const count = [20, 3_000, 20_000][round] ?? 20;
      await Promise.all(stacks.map((stack) => ok(importState(app, stack, count, `round ${round} `))));
      for (const stack of stacks) expect(await noteOf(app, stack)).toBe(round);
    }
    // Connections that are just being renewed are in no list of clients.
    await until(
      async () =>
        (await app.context.jobQueueView?.overview(5))?.queues.every(
          ({ failed, workers }) => failed === 0 && workers === 1,
        ) === true,
      'the view shows a worker of each queue',
    );
    const all = watched.keys.flatMap((keys) => [...keys]);
    expect(all.filter((key) => !key.startsWith('holdfast:'))).toEqual([]);
    const keysLeft = async (): Promise<string[]> => (await Promise.all(group.servers.map(keysOf))).flat();
    await until(
      async () => (await keysLeft()).every((key) => !key.startsWith('holdfast:body:')),
      'all bodies are deleted',
    );
    const metrics = await app.context.metrics.registry.metrics();
    expect(Number(/^holdfast_redis_memory_bytes (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0);
  });

  test('a server that loses its data in the middle of writes', async () => {
    const held = await Promise.all(group.servers.map(keysOf));
    // That of the queue, so that jobs are lost, too.
    const lost = group.servers[held.findIndex((keys) => keys.includes('holdfast:{writes-small}:meta'))] as RedisMember;
    await writeThrough(app, async () => {
      await lost.kill();
      await until(async () => (await app.call('GET', '/readyz')).json.queue !== 'ok', 'the loss is noticed');
      await lost.restart();
      await untilClusterWorks(group.servers);
    });
  });
});

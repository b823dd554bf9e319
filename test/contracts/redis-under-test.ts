import { afterAll, beforeAll } from '@jest/globals';
import { type RedisServer, startRedisServer } from '../../testkit/redis-server.ts';
import { describeWithTools } from '../support/tools.ts';

/** Defines tests that need Redis, which is started for them only. */
export async function describeOnRedis(define: (server: () => RedisServer) => void): Promise<void> {
  let server: RedisServer | undefined;
  const running = (): RedisServer => {
    if (server === undefined) throw new Error('Redis is not running');
    return server;
  };
  await describeWithTools('Redis', ['redis-server'], () => {
    beforeAll(async () => {
      server = await startRedisServer();
    });
    afterAll(() => server?.stop());
    define(running);
  });
}

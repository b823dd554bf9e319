import { afterAll, beforeAll, describe } from '@jest/globals';
import { type RedisServer, startRedisServer } from '../../e2e/support/redis-server.ts';
import { ensureToolchain } from '../../e2e/toolchain/toolchain.ts';

/**
 * Defines tests that need a Redis, started for them alone. Where it cannot be had they are skipped and the reason printed;
 * in CI that is a failure.
 */
export async function describeOnRedis(define: (server: () => RedisServer) => void): Promise<void> {
  const reason = await reasonToSkip();
  let server: RedisServer | undefined;
  const running = (): RedisServer => {
    if (server === undefined) throw new Error('Redis is not running');
    return server;
  };
  if (reason !== null) {
    process.stderr.write(`skipping tests on Redis: ${reason}\n`);
    describe.skip('Redis', () => define(running));
    return;
  }
  describe('Redis', () => {
    beforeAll(async () => {
      server = await startRedisServer();
    }, 60_000);
    afterAll(() => server?.stop());
    define(running);
  });
}

async function reasonToSkip(): Promise<string | null> {
  try {
    await ensureToolchain({ only: ['redis-server'] });
    return null;
  } catch (error) {
    if (process.env['CI']) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}

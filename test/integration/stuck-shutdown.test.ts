import { expect, test } from '@jest/globals';
import { startServerChild } from '../support/server-child.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { createTestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

test('a server whose database hangs ends by its deadline, although several of its parts do not close', async () => {
  await using database = await createTestDatabase();
  await using proxy = await openTcpProxy(database.url);
  const server = await startServerChild({ ...database, url: proxy.url }, { HOLDFAST_SHUTDOWN_SECONDS: '10' });
  proxy.hang();
  const start = performance.now();
  await server[Symbol.asyncDispose]();
  // The allowance is for a busy machine: two of the parts that hang would take twenty seconds.
  expect(performance.now() - start).toBeLessThan(10_000 + 9_000);
  await until(() => server.lines().some(({ msg }) => msg === 'stopped'), 'the last lines are read');
  const stuck = server.lines().filter(({ msg }) => msg === 'shutdown: gave up waiting');
  expect(stuck.length).toBeGreaterThanOrEqual(2);
});

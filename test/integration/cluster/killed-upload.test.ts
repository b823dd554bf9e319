import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { holdfastProgram } from '../../../testkit/holdfast-program.ts';
import { type ServerHandle, startOnFreePort, startServer } from '../../../testkit/server-process.ts';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { exportedNames } from '../../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate } from '../../support/state.ts';
import { createTestApp, masterKeys, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { head } from '../../support/wire.ts';

const mib = 1024 * 1024;

await describeWithTools('an API that is killed during uploads', ['redis-server'], () => {
  let cluster: Cluster;
  let app: TestApp;
  let redis: Redis;
  let victim: ServerHandle & { port: number };
  const settings = { HOLDFAST_REDIS_IN_FLIGHT_BYTES: String(4 * mib) };

  beforeAll(async () => {
    cluster = await startAppCluster({ settings });
    app = await createTestApp();
    redis = new Redis(cluster.redisAdminUrl(app.database));
    victim = await startOnFreePort(async (port) => {
      const server = await startServer({
        name: 'api',
        file: process.execPath,
        args: () => [holdfastProgram, 'api'],
        env: {
          ...settings,
          HOLDFAST_LISTEN: `127.0.0.1:${port}`,
          HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
          HOLDFAST_DATABASE_URL: app.database.url,
          HOLDFAST_DATA_DIR: app.dataDir,
          HOLDFAST_REDIS_URL: cluster.redisUrl(app.database),
          HOLDFAST_MASTER_KEYS: masterKeys,
        },
        isReady: async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200,
      });
      return Object.assign(server, { port });
    });
  });
  afterAll(async () => {
    await victim?.stop();
    redis?.disconnect();
    await app?.[Symbol.asyncDispose]();
    await cluster?.stop();
  });

  async function held(): Promise<number> {
    await app.context.payloads.check(60_000);
    return app.context.payloads.bytesHeld();
  }

  test('has its budget and the chunks of its bodies released within seconds', async () => {
    const [stack, other] = [await createStack(app), await createStack(app)];
    const update = await startUpdate(app, stack);
    const document = Buffer.from(JSON.stringify(deployment(1, randomBytes(1.5 * mib).toString('hex'))));
    const sent = document.subarray(0, -1);
    const uploads = [
      ['POST', `${other.path}/import`, other.auth],
      ['PATCH', `${update.path}/checkpoint`, update.lease],
    ].map(([method, target, auth]) => {
      const socket = connect({ host: '127.0.0.1', port: victim.port });
      socket.on('error', () => {});
      const headers = {
        Authorization: auth as string,
        Accept: 'application/vnd.pulumi+9',
        'Content-Type': 'application/json',
      };
      socket.write(head(method as string, target as string, { headers, length: document.length }));
      socket.write(sent);
      return socket;
    });
    await until(async () => (await held()) >= 2 * sent.length, 'both bodies are there but for a byte');
    const save = () => app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: document });
    expect((await save()).status).toBe(503);

    await victim.kill();
    const killedAt = performance.now();
    await until(async () => (await held()) === 0, 'the whole budget is free');
    await until(async () => (await redis.keys('holdfast:body:*')).length === 0, 'all chunks are gone');
    process.stderr.write(`budget and chunks were free ${Math.round(performance.now() - killedAt)} ms after the kill\n`);
    await ok(save());
    expect(await exportedNames(app, stack)).toHaveLength(1);
    for (const socket of uploads) socket.destroy();
  });
});

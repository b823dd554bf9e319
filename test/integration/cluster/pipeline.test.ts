import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { ClusterContext } from '../../../src/shared/cluster-context.ts';
import type { JobAdmission } from '../../../src/shared/jobs/job-admission-repository.ts';
import type { Job } from '../../../src/shared/jobs/job-list.ts';
import { openBlobStore } from '../../../src/shared/platform/blobs/blob-stores.ts';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { query } from '../../support/database.ts';
import { DelayedPuts } from '../../support/delayed-puts.ts';
import { creation } from '../../support/journal-entries.ts';
import { exportedNames, getStack } from '../../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate } from '../../support/state.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { append, complete, saveState } from '../../support/update-calls.ts';

await describeWithTools('writes through the queue', ['redis-server'], () => {
  const puts = new DelayedPuts();
  let cluster: Cluster;
  let app: TestApp;
  let redis: Redis;
  let directory: string;

  beforeAll(async () => {
    cluster = await startAppCluster({ settings: { HOLDFAST_INLINE_BYTES: '1', blobGraceSeconds: 3600 } });
    directory = await mkdtemp(path.join(tmpdir(), 'holdfast-pipeline-'));
    const blobs = puts.over(await openBlobStore({ kind: 'files', directory }));
    app = await createTestApp({ overrides: { blobs } });
    redis = new Redis(cluster.redisAdminUrl(app.database));
    // One of the tests stops Redis.
    redis.on('error', () => {});
  });
  afterAll(async () => {
    puts.reset();
    redis.disconnect();
    await app[Symbol.asyncDispose]();
    await cluster.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Sends a request on its own socket, for a client that disconnects. */
  async function sendRaw(options: { method: string; path: string; auth: string; body: Buffer; sent?: number }) {
    if (!app.app.server.listening) await app.app.listen({ host: '127.0.0.1', port: 0 });
    const address = app.app.server.address() as { port: number };
    const socket = connect(address.port, '127.0.0.1');
    await once(socket, 'connect');
    const head = [
      `${options.method} ${options.path} HTTP/1.1`,
      'host: test',
      'accept: application/vnd.pulumi+9',
      'content-type: application/json',
      'content-encoding: gzip',
      `authorization: ${options.auth}`,
      `content-length: ${options.body.length}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(options.body.subarray(0, options.sent ?? options.body.length));
    return socket;
  }

  describe('a client that disconnects', () => {
    test('while it waits: its write is committed anyway', async () => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      puts.hold(1);
      const body = gzipSync(JSON.stringify(deployment(3)));
      const socket = await sendRaw({ method: 'PATCH', path: `${update.path}/checkpoint`, auth: update.lease, body });
      await until(() => puts.held.length === 1, 'the worker has it');
      socket.destroy();
      puts.reset();
      await until(async () => (await exportedNames(app, stack)).length === 3, 'committed');
    });

    test('in the middle of its body leaves no job and no bytes', async () => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      const body = gzipSync(JSON.stringify(deployment(2_000)), { level: 1 });
      const before = new Set(await jobKeys());
      const request = { method: 'PATCH', path: `${update.path}/checkpoint`, auth: update.lease, body, sent: 1_000 };
      const socket = await sendRaw(request);
      await until(async () => (await redis.hlen('holdfast:budget:writes:arriving')) === 1, 'the budget is taken');
      socket.destroy();
      await until(async () => (await redis.hlen('holdfast:budget:writes:arriving')) === 0, 'the budget is released');
      expect(await redis.keys('holdfast:body:*')).toEqual([]);
      expect((await jobKeys()).filter((key) => !before.has(key))).toEqual([]);
      expect(await exportedNames(app, stack)).toEqual([]);
    });
  });

  describe('full checkpoints', () => {
    test('a late one never overwrites a newer one', async () => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      puts.hold(1);
      const late = saveState(app, update, 1, 'late');
      await until(() => puts.held.length === 1, 'the first is on its way');
      await ok(saveState(app, update, 2, 'newer'));
      puts.reset();
      expect((await late).status).toBe(204);
      expect(await exportedNames(app, stack)).toHaveLength(2);
      await ok(saveState(app, update, 3, 'newest'));
      await ok(complete(app, update));
      expect(await exportedNames(app, stack)).toHaveLength(3);
    });

    test('many at once end with the one that arrived last', async () => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      puts.hold(3);
      const sent = [];
      for (let count = 1; count <= 3; count++) {
        sent.push(saveState(app, update, count));
        await until(() => puts.held.length === count, 'it is on its way');
      }
      for (const index of [2, 0, 1]) puts.letGo(index);
      for (const answer of await Promise.all(sent)) expect(answer.status).toBe(204);
      puts.reset();
      expect(await exportedNames(app, stack)).toHaveLength(3);
    });
  });

  test('a lease lost between upload and commit is reported to the client as such', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    puts.hold(1);
    const flying = saveState(app, update, 4);
    await until(() => puts.held.length === 1, 'stored');
    await ok(app.call('POST', `${update.path}/cancel`, { auth: stack.auth }));
    puts.reset();
    const answer = await flying;
    expect([answer.status, answer.json.code]).toEqual([403, 403]);
    expect(await exportedNames(app, stack)).toEqual([]);
  });

  test('a journal sent through the queue in any order is the same journal', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    const batches = Array.from({ length: 20 }, (_, index) => creation(index * 2 + 1, `r${index}`, stack));
    await Promise.all(
      batches.map((batch) => append(app, update, batch).then((answer) => expect(answer.status).toBe(204))),
    );
    // Repeated, like a client that lost the responses.
    await Promise.all(
      batches.map((batch) => append(app, update, batch).then((answer) => expect(answer.status).toBe(204))),
    );
    await ok(complete(app, update));
    expect((await exportedNames(app, stack)).sort()).toEqual(
      Array.from({ length: 20 }, (_, index) => `r${index}`).sort(),
    );
  });

  describe('an import', () => {
    test('through the queue is one version', async () => {
      const stack = await createStack(app);
      await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(4)) }));
      expect(await exportedNames(app, stack)).toHaveLength(4);
      expect((await getStack(app, stack)).version).toBe(1);
    });

    test('is not repeated when its job is delivered again', async () => {
      const stack = await createStack(app);
      puts.hold(1);
      const sent = app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(4)) });
      await until(() => puts.held.length === 1, 'the first run is on its way');
      const [id] = (await redis.lrange('holdfast:writes-small:active', 0, -1)) as [string];
      // Like a second worker that takes over the job while the first still works on it.
      const [worker] = cluster.workers as [ClusterContext];
      const { job, encryption } = (await worker.admissions.find(id)) as JobAdmission;
      await app.context.dispatcher.run(job as Job, { encryption });
      puts.reset();
      expect((await sent).status).toBeLessThan(300);
      expect((await getStack(app, stack)).version).toBe(1);
      const [{ count }] = (await query(
        app,
        `select count(*)::int as count from updates u join stacks s on s.id = u.stack_id
       join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
       where o.name = $1 and u.kind = 'import'`,
        [stack.organization],
      )) as [{ count: number }];
      expect(count).toBe(1);
    });
  });

  test.each([
    ['no gzip', () => Buffer.from('plain'), 400],
    ['gzip cut short', () => gzipSync(JSON.stringify(deployment(500))).subarray(0, 200), 400],
    ['no JSON', () => gzipSync('{"deployment":'), 400],
    ['a version of a later CLI', () => gzipSync('{"version":99,"deployment":{}}'), 400],
    ['nothing', () => gzipSync(''), 400],
  ])('an error found by a worker is returned to the client as its own: %s', async (_label, body, status) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const headers = { 'content-encoding': 'gzip' };
    const answer = await app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: body(), headers });
    expect([answer.status, answer.json.code]).toEqual([status, status]);
    await until(async () => (await redis.zcard('holdfast:budget:writes:lives')) === 0, 'nothing is left');
  });

  test('a committed write leaves no body behind when its worker dies before it has deleted it', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const [{ payloads }] = cluster.workers as [ClusterContext];
    using deleting = jest.spyOn(payloads, 'delete').mockResolvedValue();
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(4)) }));
    await until(() => deleting.mock.calls.length === 2, 'the worker would have deleted both');
    await until(async () => (await redis.keys('holdfast:body:*')).length === 0, 'the bodies are deleted');
    await until(async () => (await redis.keys('holdfast:budget:*:lives')).length === 0, 'the budget is free');
  });

  test('Redis holds only ids of the queue and encrypted bodies while a write is pending', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    puts.hold(1);
    const note = `note-${randomUUID()}`;
    const flying = saveState(app, update, 1, note);
    await until(() => puts.held.length === 1, 'on its way');
    const bodies = await Promise.all((await redis.keys('holdfast:body:*')).map((key) => redis.get(key)));
    expect(bodies.length).toBeGreaterThan(1);
    const text = JSON.stringify([await activeJobs(), bodies]);
    expect(text).not.toContain(update.id);
    expect(text).not.toContain(note);
    expect(text).not.toContain(update.lease.split(' ')[1]);
    expect(text).not.toContain(stack.auth.split(' ')[1]);
    puts.reset();
    await ok(flying);
  });

  test('while Redis is away small calls work and writes answer 503 with Retry-After; everything works again afterwards', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    await cluster.redis.kill();
    try {
      const answer = await saveState(app, update, 2);
      expect([answer.status, answer.json.code]).toEqual([503, 503]);
      expect(answer.headers['retry-after']).toBeDefined();
      expect(await exportedNames(app, stack)).toHaveLength(1);
      await createStack(app);
      expect((await app.call('GET', '/readyz')).json).toMatchObject({ status: 'degraded', queue: 'unreachable' });
      expect((await app.call('GET', '/healthz')).status).toBe(200);
    } finally {
      await cluster.redis.restart();
    }
    await until(async () => (await saveState(app, update, 2)).status === 204, 'writes work again');
    expect(await exportedNames(app, stack)).toHaveLength(2);
    await ok(complete(app, update));
  });

  /** Keys of the records of jobs; other keys of the queues come and go. */
  async function jobKeys(): Promise<string[]> {
    return (await redis.keys('holdfast:writes-*')).filter((key) => /:[0-9a-f-]{36}$/.test(key));
  }

  /** Data of the jobs that workers are processing. */
  async function activeJobs(): Promise<unknown[]> {
    const ids = await redis.lrange('holdfast:writes-small:active', 0, -1);
    return Promise.all(
      ids.map(async (id) => JSON.parse((await redis.hget(`holdfast:writes-small:${id}`, 'data')) ?? 'null') as unknown),
    );
  }
});

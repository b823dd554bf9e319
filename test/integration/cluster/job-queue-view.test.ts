import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createMetrics } from '../../../src/shared/platform/telemetry/metrics.ts';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { query } from '../../support/database.ts';
import { ask, command } from '../../support/procedures.ts';
import { createStack, ok, startUpdate } from '../../support/state.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { saveState } from '../../support/update-calls.ts';

await describeWithTools('queues for admins', ['redis-server'], () => {
  const url = '/admin/queues';
  let cluster: Cluster;
  let app: TestApp;
  let admin: string;

  beforeAll(async () => {
    cluster = await startAppCluster({ jobAttempts: 3 });
    app = await createTestApp();
    const token = await app.createUser('operators', 'viewer', 'operator');
    const { identity } = app.context;
    const user = await identity.findUser('operator');
    await identity.setSiteAdmin(user?.id as string, true);
    admin = basic('operator', token);
  });
  afterAll(async () => {
    await app[Symbol.asyncDispose]();
    await cluster.stop();
  });

  function basic(user: string, password: string): string {
    return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  }

  const openPage = (auth?: string, accept = 'text/html') =>
    app.call('GET', url, { accept, ...(auth === undefined ? {} : { auth }) });

  describe('the queue page', () => {
    test.each([
      ['nothing', undefined],
      ['an empty password', basic('operator', '')],
      ['a password that is not a token', basic('operator', 'guess')],
      ['an invalid Basic credential', 'Basic !!!'],
      ['a token without Basic', 'token abc'],
    ])('asks for a login when given %s', async (_label, auth) => {
      const answer = await openPage(auth);
      expect([answer.status, answer.json.code]).toEqual([401, 401]);
      expect(answer.headers['www-authenticate']).toMatch(/^Basic realm=/);
    });

    test.each(['x-forwarded-for', 'forwarded'])('is not there for requests through a proxy (%s)', async (header) => {
      for (const path of [url, '/admin/%71ueues']) {
        const answer = await app.call('GET', path, { auth: admin, headers: { [header]: '192.0.2.1' } });
        expect(answer.status).toBe(404);
        expect(answer.headers).not.toHaveProperty('www-authenticate');
      }
    });

    test('is forbidden to admins of an organization', async () => {
      const token = await app.createUser('operators', 'admin');
      expect((await openPage(basic('x', token))).status).toBe(403);
      expect((await openPage(basic('x', token), 'application/json')).status).toBe(403);
    });

    test('is shown to site admins, whatever their user name, and never cached', async () => {
      const token = Buffer.from(admin.slice(6), 'base64').toString().split(':')[1] as string;
      for (const auth of [admin, basic('', token), basic('any:one'.slice(0, 3), token)]) {
        const answer = await openPage(auth);
        expect(answer.status).toBe(200);
        const style = /<style>(.*)<\/style>/s.exec(answer.text)?.[1] ?? '';
        const styleHash = createHash('sha256').update(style).digest('base64');
        expect(answer.headers).toMatchObject({
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
          'content-security-policy': expect.stringContaining(
            `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri`,
          ),
        });
        expect(answer.text).toContain('Queue small');
        expect(answer.text).not.toContain(token);
      }
    });

    test('is read-only', async () => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
        expect((await app.call(method, url, { auth: admin })).status).toBe(404);
    });

    test('shows queues, workers and jobs by their ids', async () => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      await ok(saveState(app, update, 1, 'a-value-of-the-state'));
      const look = async () => (await openPage(admin, 'application/json')).json;
      const workersOf = (json: { queues: { name: string; workers: number }[] }) =>
        json.queues.map(({ name, workers }) => [name, workers]);
      await until(async () => workersOf(await look()).every(([, workers]) => workers !== 0), 'both workers are there');
      const json = await look();
      expect(json.redis).toMatchObject({ up: true });
      expect(workersOf(json)).toEqual([
        ['small', 1],
        ['large', 1],
      ]);
    });

    test('shows a failed job with the kind of its fault and without content', async () => {
      const { context } = app;
      const updateId = '<b>no-update</b>';
      await expect(context.dispatcher.run({ name: 'compact-journal', schema: 1, updateId })).rejects.toThrow();
      await until(async () => (await openPage(admin, 'application/json')).json.queues[0].failed === 1, 'given up');
      const [job] = (await openPage(admin, 'application/json')).json.queues[0].jobs;
      expect(Object.keys(job).sort()).toEqual(
        [
          ...['addedAt', 'attempts', 'canRetry', 'endedAt', 'fault', 'id', 'name'],
          ...['stackId', 'stalls', 'startedAt', 'state', 'updateId'],
        ].sort(),
      );
      expect(job).toMatchObject({ name: 'compact-journal', state: 'failed', updateId, attempts: 3 });
      const page = await openPage(admin);
      expect(page.text).toContain('&#60;b&#62;no-update');
      expect(page.text).not.toContain('<b>');
    });
  });

  test('a job that failed permanently can be run again or discarded; one with a body only by its caller', async () => {
    const token = Buffer.from(admin.slice(6), 'base64').toString().split(':')[1] as string;
    const jobs = async () => (await ask(app, token, 'operator.queues')).data.queues[0].jobs;
    const failed = async () => (await jobs()).filter(({ state }: { state: string }) => state === 'failed');
    for (const { id } of await failed())
      expect(await command(app, token, 'operator.discardJob', { queue: 'small', id })).toMatchObject({ error: null });
    expect(await failed()).toEqual([]);
    const { dispatcher } = app.context;
    await expect(dispatcher.run({ name: 'compact-journal', schema: 1, updateId: 'none' })).rejects.toThrow();
    await until(async () => (await failed()).length === 1, 'given up');
    const [{ canRetry, id }] = await failed();
    expect(canRetry).toBe(true);
    expect(await command(app, token, 'operator.retryJob', { queue: 'large', id })).toMatchObject({ status: 404 });
    expect(await command(app, token, 'operator.retryJob', { queue: 'small', id })).toMatchObject({ error: null });
    await until(async () => (await failed()).some((job: { id: string }) => job.id !== id), 'given up once more');
    expect(await failed()).toHaveLength(1);

    const fence = { updateId: randomUUID(), stackId: randomUUID(), epoch: 1 };
    const payload = { payloadKey: randomUUID(), encoding: 'identity' } as const;
    await expect(dispatcher.run({ name: 'append-events', schema: 1, fence, ...payload })).rejects.toThrow();
    await until(async () => (await failed()).length === 2, 'given up');
    const write = (await failed()).find(({ name }: { name: string }) => name === 'append-events');
    expect(write.canRetry).toBe(false);
    const refused = await command(app, token, 'operator.retryJob', { queue: 'small', id: write.id });
    expect(refused).toMatchObject({ status: 409, error: { message: expect.stringContaining('only its caller') } });
    const recorded = await query<{ action: string }>(
      app,
      `select action from audit_events where action like 'job.%' order by number`,
    );
    expect(recorded.map(({ action }) => action)).toEqual(['job.discard', 'job.retry']);
  });

  test('the page does not exist without Redis', async () => {
    // Other test files start the embedded mode; here its routes are enough.
    const { buildApi } = await import('../../../src/api/app.ts');
    const { jobQueueView: _jobQueueView, ...context } = app.context;
    // Each process has its own statistics.
    const bare = await buildApi({ ...context, metrics: createMetrics() });
    expect((await bare.inject({ method: 'GET', url, headers: { authorization: admin } })).statusCode).toBe(404);
    await bare.close();
  });
});

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { query } from '../../support/database.ts';
import { chunkKey, RedisAttacker, tamperings } from '../../support/redis-attacker.ts';
import { exportedNames, getStack } from '../../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { complete, saveState } from '../../support/update-calls.ts';

await describeWithTools('an attacker who can write to Redis', ['redis-server'], () => {
  const lines: string[] = [];
  let cluster: Cluster;
  let app: TestApp;
  let attacker: RedisAttacker;
  let stack: TestStack;

  beforeAll(async () => {
    cluster = await startAppCluster({
      settings: { HOLDFAST_MAX_BODY_BYTES: '20000000', jobWaitSeconds: 60 },
    });
    app = await createTestApp({ log: { write: (line) => void lines.push(line) } });
    attacker = new RedisAttacker(cluster.redisAdminUrl(app.database));
  });
  afterAll(async () => {
    await attacker.close();
    await app[Symbol.asyncDispose]();
    await cluster.stop();
  });
  beforeEach(async () => {
    stack = await createStack(app);
    await ok(importState(2));
    await until(async () => (await attacker.bodies()).length === 0, 'the body is done with');
  });
  afterEach(async () => {
    await attacker.queue.resume();
    const planted = await attacker.redis.keys('holdfast:body:*');
    if (planted.length > 0) await attacker.redis.del(...planted);
  });

  const importState = (count: number, note = '', into = stack): Promise<TestResponse> =>
    app.call('POST', `${into.path}/import`, { auth: into.auth, body: deployment(count, note) });
  /** Several chunks. */
  const large = (note: string, into = stack): Promise<TestResponse> => importState(3, note.padEnd(300_000, '.'), into);

  async function distrusted(reason: string): Promise<number> {
    const { values } = (await cluster.workers[0]?.metrics.queueRejected.get()) ?? { values: [] };
    return values.find(({ labels }) => labels.reason === reason)?.value ?? 0;
  }

  async function headOf({ organization }: TestStack) {
    const [row] = await query<{ id: string; version: number; checkpoint: string; user: string }>(
      app,
      `select s.id, s.stack_version as version, s.checkpoint_id as checkpoint,
         (select id from users limit 1) as user from stacks s join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id where o.name = $1`,
      [organization],
    );
    if (!row) throw new Error('no stack');
    return row;
  }

  /** What an API would queue for an import into the stack. */
  async function importJob(into: TestStack, payloadKey: string): Promise<object> {
    const { id, version, checkpoint, user } = await headOf(into);
    const deadline = new Date(Date.now() + 60_000).toISOString();
    return {
      name: 'import-deployment',
      schema: 2,
      stackId: id,
      updateId: randomUUID(),
      admission: { stackVersion: version, checkpointId: checkpoint, deadline },
      requestedBy: user,
      payloadKey,
      encoding: 'identity',
    };
  }

  async function expectUntouched(): Promise<void> {
    expect(await exportedNames(app, stack)).toHaveLength(2);
    expect((await getStack(app, stack)).version).toBe(1);
    // Honest clients continue to work.
    await ok(importState(4));
    expect(await exportedNames(app, stack)).toHaveLength(4);
  }

  /** Sends the write while no worker runs, tampers with it, and resumes the workers. */
  async function meanwhile(
    send: () => Promise<TestResponse>,
    work: (jobId: string) => Promise<void>,
  ): Promise<TestResponse> {
    await attacker.queue.pause();
    const sent = send();
    await until(async () => (await attacker.waiting()).length === 1, 'it waits');
    const [jobId] = (await attacker.waiting()) as [string];
    await work(jobId);
    await attacker.queue.resume();
    return sent;
  }

  test('cannot import anything with a forged job', async () => {
    const before = await distrusted('unknown');
    const payloadKey = await attacker.plant(Buffer.from(JSON.stringify(deployment(9))));
    const jobId = await attacker.forge('import-deployment', { job: await importJob(stack, payloadKey) });
    await until(() => attacker.isOver(jobId), 'it was looked at');
    await expectUntouched();
    expect(await distrusted('unknown')).toBe(before + 1);
    expect(lines.filter((line) => line.includes('rejected a job or body from Redis')).length).toBeGreaterThan(0);
  });

  test('gets a flood of forged jobs rejected, with only a few log lines', async () => {
    const before = await distrusted('unknown');
    const linesBefore = lines.length;
    const forged = Array.from({ length: 500 }, (_, at) => ({
      name: at % 2 ? 'compact-journal' : '<b>'.padEnd(1_000, 'x'),
      data: at % 3 ? { job: { name: 'compact-journal', schema: 1, updateId: randomUUID() } } : (null as never),
      opts: { jobId: at % 5 ? randomUUID() : `x${'y'.repeat(500)}${at}`, attempts: 1 },
    }));
    await attacker.queue.addBulk(forged);
    await until(async () => (await distrusted('unknown')) === before + forged.length, 'all are refused');
    const since = lines.slice(linesBefore).filter((line) => line.includes('"level":40') || line.includes('"level":50'));
    expect(since.length).toBeLessThan(20);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(2_000);
    await expectUntouched();
  });

  test.each(['the same id', 'a new id'])('has no effect by putting a finished job back, under %s', async (which) => {
    const reason = which === 'the same id' ? 'replayed' : 'unknown';
    const before = await distrusted(reason);
    let record: Record<string, string> = {};
    let [jobId, key] = ['', ''];
    let chunks: Buffer[] = [];
    const answer = await meanwhile(
      () => large('older'),
      async (id) => {
        jobId = id;
        [key] = (await attacker.bodies()) as [string];
        chunks = [await attacker.chunk(key, 0), await attacker.chunk(key, 1)];
        record = await attacker.redis.hgetall(`holdfast:writes-small:${id}`);
      },
    );
    expect(answer.status).toBe(200);
    await ok(importState(2));
    await until(() => attacker.isOver(jobId), 'it is over');
    await (await attacker.queue.getJob(jobId))?.remove();
    for (const [at, chunk] of chunks.entries()) await attacker.redis.set(chunkKey(key, at), chunk);
    const again = which === 'the same id' ? jobId : randomUUID();
    await attacker.forge(record['name'] as string, JSON.parse(record['data'] as string) as object, again);
    await until(() => attacker.isOver(again), 'it was looked at');
    expect(await distrusted(reason)).toBe(before + 1);
    expect(await exportedNames(app, stack)).toHaveLength(2);
    expect((await getStack(app, stack)).version).toBe(3);
  });

  test('has no effect by changing a queued job', async () => {
    const before = await distrusted('altered');
    const victim = await createStack(app);
    const planted = await attacker.plant(Buffer.from(JSON.stringify(deployment(9))));
    const forged = await importJob(victim, planted);
    const answer = await meanwhile(
      () => importState(5),
      async (jobId) => {
        const record = `holdfast:writes-small:${jobId}`;
        await attacker.redis.hset(
          record,
          'name',
          'apply-checkpoint',
          'data',
          JSON.stringify({ job: forged, replyTo: 'x' }),
        );
      },
    );
    expect(answer.status).toBe(200);
    expect(await exportedNames(app, stack)).toHaveLength(5);
    expect(await exportedNames(app, victim)).toEqual([]);
    expect(await distrusted('altered')).toBe(before + 1);
  });

  test('has no effect by swapping the records and the bodies of two jobs', async () => {
    const before = await distrusted('body');
    const other = await createStack(app);
    await attacker.queue.pause();
    const sent = [large('one'), large('other', other)];
    await until(async () => (await attacker.waiting()).length === 2, 'both wait');
    const [one, two] = (await attacker.waiting()) as [string, string];
    const [key, otherKey] = (await attacker.bodies()) as [string, string];
    for (const at of [0, 1]) {
      const chunks = [await attacker.chunk(key, at), await attacker.chunk(otherKey, at)] as const;
      await attacker.setChunk(key, at, chunks[1]);
      await attacker.setChunk(otherKey, at, chunks[0]);
    }
    const data = await Promise.all([one, two].map((id) => attacker.redis.hget(`holdfast:writes-small:${id}`, 'data')));
    await attacker.redis.hset(`holdfast:writes-small:${one}`, 'data', data[1] as string);
    await attacker.redis.hset(`holdfast:writes-small:${two}`, 'data', data[0] as string);
    await attacker.queue.resume();
    for (const answer of await Promise.all(sent)) {
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBeDefined();
    }
    expect(await distrusted('body')).toBe(before + 2);
    expect(await exportedNames(app, other)).toEqual([]);
    await expectUntouched();
  });

  test.each(Object.keys(tamperings))('gets a body with %s rejected', async (name) => {
    const before = await distrusted('body');
    const answer = await meanwhile(
      () => large('honest'),
      async () => {
        const [key] = (await attacker.bodies()) as [string];
        await tamperings[name]?.(attacker, key);
      },
    );
    expect([answer.status, answer.json.code]).toEqual([503, 503]);
    expect(await distrusted('body')).toBe(before + 1);
    await expectUntouched();
  });

  test('has no effect by changing what a job says about its body', async () => {
    const answer = await meanwhile(
      () => large('honest'),
      async () => {
        const [key] = (await attacker.bodies()) as [string];
        const chunk = await attacker.chunk(key, 0);
        // More chunks, fewer chunks, and chunks of an earlier release.
        for (const at of [10, 11, 12]) await attacker.redis.set(chunkKey(key, at), chunk);
        await attacker.redis.set(`holdfast:body:${key}`, '99999999999 1 imports');
      },
    );
    expect(answer.status).toBe(200);
    expect(await exportedNames(app, stack)).toHaveLength(3);
  });

  test('cannot make a call report a write that did not happen', async () => {
    const update = await startUpdate(app, stack);
    let answered = false;
    const answer = await meanwhile(
      async () =>
        saveState(app, update, 7).finally(() => {
          answered = true;
        }),
      async (jobId) => {
        const channels = (await attacker.redis.pubsub('CHANNELS', 'holdfast:done:*')) as string[];
        for (const channel of channels)
          for (const result of ['settled', 'failed'])
            await attacker.redis.publish(channel, JSON.stringify({ jobId, result }));
        await sleep(300);
        expect(answered).toBe(false);
        // As if it were done: BullMQ's own record says so.
        await (await attacker.queue.getJob(jobId))?.remove();
        await attacker.redis.hset(`holdfast:writes-small:${jobId}`, {
          name: 'apply-checkpoint',
          data: '{}',
          finishedOn: 1,
        });
        await attacker.redis.zadd('holdfast:writes-small:completed', Date.now(), jobId);
      },
    );
    expect(answer.status).toBe(503);
    await ok(saveState(app, update, 7));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toHaveLength(7);
  });

  test('cannot run a job whose caller was informed that it failed', async () => {
    const before = await distrusted('expired');
    let [jobId, data] = ['', ''];
    const update = await startUpdate(app, stack);
    const answer = await meanwhile(
      () => saveState(app, update, 6),
      async (id) => {
        jobId = id;
        data = (await attacker.redis.hget(`holdfast:writes-small:${id}`, 'data')) as string;
        await (await attacker.queue.getJob(id))?.remove();
      },
    );
    expect(answer.status).toBe(503);
    const revoked = async () =>
      (await query(app, 'select 1 from job_admissions where id = $1 and expires_at <= clock_timestamp()', [jobId]))
        .length > 0;
    await until(revoked, 'revoked');
    await attacker.forge('apply-checkpoint', JSON.parse(data) as object, jobId);
    await until(() => attacker.isOver(jobId), 'it was looked at');
    expect(await distrusted('expired')).toBe(before + 1);
    expect(await exportedNames(app, stack)).toHaveLength(2);
    await ok(complete(app, update));
  });

  test('cannot inject more than text into the queue page', async () => {
    const script = '<script>alert(1)</script>';
    const jobId = await attacker.forge(script, { job: { name: script } }, `${script}${randomUUID()}`);
    await until(() => attacker.isOver(jobId), 'it was looked at');
    const record = `holdfast:writes-small:${jobId}`;
    await attacker.redis.hset(record, {
      timestamp: 'never',
      processedOn: '1e99',
      failedReason: script.repeat(1_000),
      atm: 'x',
    });
    const token = await app.createUser('operators', 'viewer', 'operator');
    const { identity } = app.context;
    await identity.setSiteAdmin((await identity.findUser('operator'))?.id as string, true);
    const auth = `Basic ${Buffer.from(`x:${token}`).toString('base64')}`;
    const page = await ok(app.call('GET', '/admin/queues', { auth, accept: 'text/html' }));
    expect(page.text).toContain('&#60;script&#62;');
    expect(page.text).not.toContain('<script');
    expect(page.text.length).toBeLessThan(200_000);
    const { json } = await ok(app.call('GET', '/admin/queues', { auth, accept: 'application/json' }));
    expect(json.queues[0].jobs.find(({ id }: { id: string }) => id === jobId)).toMatchObject({
      addedAt: null,
      updateId: null,
      stackId: null,
      attempts: 0,
    });
    await attacker.queue.obliterate({ force: true });
    await attacker.queue.resume();
    await expectUntouched();
  });
});

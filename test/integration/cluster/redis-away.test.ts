import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { openBlobStore } from '../../../src/shared/platform/blobs/blob-stores.ts';
import { type Cluster, startAppCluster } from '../../support/cluster-app.ts';
import { DelayedPuts } from '../../support/delayed-puts.ts';
import { creation } from '../../support/journal-entries.ts';
import { exportedNames, getStack } from '../../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../../support/state.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';
import { describeWithTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { append, complete, expire } from '../../support/update-calls.ts';

await describeWithTools('updates with a journal while Redis is away', ['redis-server'], () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-redis-away-'));
  const puts = new DelayedPuts();
  let cluster: Cluster;
  let app: TestApp;
  let isDown = false;
  beforeAll(async () => {
    cluster = await startAppCluster({ settings: { HOLDFAST_DIRECT_BYTES: '1000000', HOLDFAST_INLINE_BYTES: '1' } });
    const blobs = puts.over(await openBlobStore({ kind: 'files', directory }));
    app = await createTestApp({ overrides: { blobs } });
  });
  const stop = async (): Promise<void> => {
    isDown = true;
    await cluster.redis.kill();
  };
  afterEach(async () => {
    puts.reset();
    if (!isDown) return;
    isDown = false;
    await cluster.redis.restart();
    await until(async () => (await app.call('GET', '/readyz')).json.queue === 'ok', 'Redis is back');
  });
  afterAll(async () => {
    await app[Symbol.asyncDispose]();
    await cluster.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Appends the entries of `count` resources. */
  async function appendResources(stack: TestStack, update: RunningUpdate, count: number): Promise<void> {
    for (let from = 0; from < count; from += 500) {
      const entries = Array.from({ length: Math.min(500, count - from) }, (_, index) =>
        creation((from + index) * 2 + 1, `r${from + index}`, stack),
      ).flat();
      await ok(append(app, update, entries));
    }
  }

  /** A stack whose update died with entries that no checkpoint holds. */
  async function abandoned(count: number): Promise<TestStack> {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, count);
    await expire(app, update.id);
    return stack;
  }

  test('a complete update works, and so does the next one', async () => {
    await stop();
    const stack = await createStack(app);
    for (const version of [1, 2]) {
      const update = await startUpdate(app, stack, { journal: true });
      await ok(append(app, update, [...creation(1, `a${version}`, stack), ...creation(3, `b${version}`, stack)]));
      expect((await complete(app, update)).status).toBe(204);
      expect((await getStack(app, stack)).version).toBe(version);
    }
    expect((await exportedNames(app, stack)).sort()).toEqual(['a1', 'a2', 'b1', 'b2']);
  });

  test('several stacks complete at once', async () => {
    const stacks = await Promise.all(Array.from({ length: 6 }, () => createStack(app)));
    const updates = await Promise.all(stacks.map((stack) => startUpdate(app, stack, { journal: true })));
    await Promise.all(updates.map((update, at) => appendResources(stacks[at] as TestStack, update, 400)));
    await stop();
    for (const answer of await Promise.all(updates.map((update) => complete(app, update))))
      expect(answer.status).toBe(204);
    for (const stack of stacks) expect(await exportedNames(app, stack)).toHaveLength(400);
  });

  describe('after an update that died', () => {
    const calls: Record<string, (stack: TestStack) => Promise<{ status: number }>> = {
      'a start': async (stack) => {
        const update = await startUpdate(app, stack);
        return { status: update.version === 2 ? 200 : 0 };
      },
      'an import': (stack) => app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(3) }),
      'a rename': (stack) => app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }),
      'a deletion': (stack) => app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }),
    };
    test.each(Object.keys(calls))('%s works', async (name) => {
      const stack = await abandoned(2);
      await stop();
      const answer = await (calls[name] as (typeof calls)[string])(stack);
      expect([200, 204]).toContain(answer.status);
    });
  });

  test('exports have all entries', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 400);
    await stop();
    expect(await exportedNames(app, stack)).toHaveLength(400);
    expect((await complete(app, update)).status).toBe(204);
  });

  test('a compaction that a worker is running when Redis goes away is awaited in Postgres', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 2);
    puts.hold(1);
    const completing = complete(app, update);
    await until(() => puts.held.length === 1, 'a worker has it');
    await stop();
    expect(await exportedNames(app, stack)).toHaveLength(2);
    puts.reset();
    expect((await completing).status).toBe(204);
    expect(await exportedNames(app, stack)).toHaveLength(2);
  });

  test('only a long journal gets 503 until Redis is back', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 2_501);
    await stop();
    const answer = await complete(app, update);
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, expect.anything()]);
    await cluster.redis.restart();
    isDown = false;
    await until(async () => (await complete(app, update)).status === 204, 'it completes');
    expect(await exportedNames(app, stack)).toHaveLength(2_501);
  });
});

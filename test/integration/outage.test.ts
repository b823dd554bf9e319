import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { holdInserts } from '../support/database.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import {
  createStack,
  deployment,
  gzipped,
  ok,
  type RunningUpdate,
  startUpdate,
  type TestStack,
} from '../support/state.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import {
  createTestApp,
  createTestDatabase,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';

/** `app` reaches Postgres through the proxy, `beside` directly. */
let database: TestDatabase;
let proxy: TcpProxy;
let app: TestApp;
let beside: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openTcpProxy(database.url);
  app = await createTestApp({ database: { ...database, url: proxy.url } });
  beside = await createTestApp({ database, dataDir: app.dataDir });
});
afterAll(async () => {
  proxy.accept();
  await beside[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function expectUnavailable(response: TestResponse): void {
  expect(response.status).toBe(503);
  expect(response.json).toEqual({ code: 503, message: expect.stringContaining('please retry') });
  expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
}

async function whileRefused<T>(work: () => Promise<T>): Promise<T> {
  proxy.refuse();
  try {
    return await work();
  } finally {
    proxy.accept();
  }
}

describe('without a database', () => {
  test('every kind of call returns 503 with Retry-After and succeeds when repeated later', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const journaled = await createStack(app);
    const journal = await startUpdate(app, journaled, { journal: true });
    const { auth, path } = stack;
    const calls: (() => Promise<TestResponse>)[] = [
      () => app.call('GET', path, { auth }),
      () => app.call('GET', `${path}/export`, { auth }),
      () => app.call('GET', `${path}/updates`, { auth }),
      () => app.call('GET', update.path, { auth }),
      () => app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: 'QQ==' } }),
      () => saveState(app, update, 2),
      () => append(app, journal, creation(1, 'a', journaled)),
      () => app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events: [] } }),
      () => app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }),
      () => complete(app, update),
      () => complete(app, journal),
      () => app.call('POST', `${update.path}/cancel`, { auth }),
      () => app.call('POST', `${path}/import`, { auth, ...gzipped(deployment(1)) }),
    ];
    for (const call of calls) expectUnavailable(await whileRefused(call));
    for (const call of calls) await ok(call());
    expect(await exportedNames(beside, journaled)).toEqual(['a']);
  });
});

describe('a connection that breaks during a call', () => {
  /** Breaks the connection while `call` waits in its transaction, at an insert into `table`. */
  async function breakAt(table: string, call: () => Promise<TestResponse>): Promise<TestResponse> {
    await using gate = await holdInserts(beside, table);
    const answer = call();
    await gate.reached(1);
    proxy.cut();
    const response = await answer;
    await gate.release();
    return response;
  }

  const cases: Record<string, (stack: TestStack, update: RunningUpdate) => Promise<TestResponse>> = {
    checkpoints: (_stack, update) => saveState(app, update, 2),
    journal_entries: (stack, update) => append(app, update, creation(1, 'a', stack)),
    engine_events: (_stack, update) =>
      app.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        body: { events: [{ sequence: 0, timestamp: 1, cancelEvent: {} }] },
      }),
  };

  test.each(Object.keys(cases))('at %s: 503; the retry succeeds and counts once', async (table) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: table === 'journal_entries' });
    const call = () => (cases[table] as (typeof cases)[string])(stack, update);
    expectUnavailable(await breakAt(table, call));
    await ok(call());
    await ok(complete(app, update));
    expect((await exportedNames(app, stack)).length).toBe({ checkpoints: 2, journal_entries: 1 }[table] ?? 0);
  });

  test('at the import: 503, and the stack has either all of it or nothing', async () => {
    const stack = await createStack(app);
    const call = () => app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(3) });
    expectUnavailable(await breakAt('checkpoints', call));
    await until(async () => [0, 1].includes((await getStack(beside, stack)).version), 'a whole version');
    const { version } = await getStack(beside, stack);
    expect((await exportedNames(beside, stack)).length).toBe(version === 1 ? 3 : 0);
    await ok(call());
    expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(3);
  });
});

test('an import with an unknown outcome is reported as such, and its deadline ends it', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-outage-'));
  const { blobs, ...gate } = await openGatedBlobs(directory);
  const settings = {
    HOLDFAST_DIRECT_BYTES: '1',
    HOLDFAST_INLINE_BYTES: '1',
    // Long enough for the job to begin, on a busy machine too.
    jobWaitSeconds: 20,
  };
  const hasty = await createTestApp({ settings, database: { ...database, url: proxy.url }, overrides: { blobs } });
  try {
    const stack = await createStack(beside);
    gate.shut();
    const call = hasty.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(3) });
    await until(() => gate.waiting() === 1, 'a job has it');
    const answer = await whileRefused(() => call);
    expectUnavailable(answer);
    expect(answer.json.message).toMatch(/not known/);
    expect(hasty.context.payloads.bytesHeld()).toBe(0);
    gate.open();
    await until(() => hasty.context.dispatcher.state().active === 0, 'the job is over');
    expect((await getStack(beside, stack)).version).toBe(0);
  } finally {
    gate.open();
    await hasty[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  }
});

test('hundreds of calls across connection cuts: acknowledged writes are there, and nothing hangs', async () => {
  const stack = await createStack(beside);
  const update = await startUpdate(beside, stack, { journal: true });
  const acknowledged: string[] = [];
  let cutting = true;
  const cutter = (async () => {
    // More and more slowly: on a busy machine hardly any call completes between two cuts.
    for (let pauseMs = 40; cutting; pauseMs++) {
      proxy.cut();
      await sleep(pauseMs);
    }
  })();
  const unexpected = new Set<number>();
  for (let index = 0; index < 150 || acknowledged.length === 0; index++) {
    const name = `n${index}`;
    const { status } = await append(app, update, creation(1 + 2 * index, name, stack));
    if (status === 204) acknowledged.push(name);
    else if (status !== 503) unexpected.add(status);
  }
  cutting = false;
  await cutter;
  expect([...unexpected]).toEqual([]);
  expect(acknowledged.length).toBeGreaterThan(0);
  // A journal that lacks the entries of failed calls cannot be completed.
  await ok(cancel(beside, stack, update));
  const there = new Set(await exportedNames(beside, stack));
  expect(acknowledged.filter((name) => !there.has(name))).toEqual([]);
});

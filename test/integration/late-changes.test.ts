import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { query } from '../support/database.ts';
import { DelayedPuts } from '../support/delayed-puts.ts';
import { exportedNames, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, isClustered, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete, saveState } from '../support/update-calls.ts';
import { head, WireServer } from '../support/wire.ts';

// Imports and renames have no sequence number that would identify a late one. `app` is any replica; at `hasty` all
// bodies become jobs, and calls wait for 1 s. Documents are put into the blob store, where single ones can be held.

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-late-'));
const puts = new DelayedPuts();
let app: TestApp;
let hasty: TestApp;
beforeAll(async () => {
  const blobs = puts.over(await openBlobStore({ kind: 'files', directory }));
  const settings = { HOLDFAST_INLINE_BYTES: '1', largeBytes: 1000, largeJobConcurrency: 1 };
  app = await createTestApp({ settings, overrides: { blobs } });
  hasty = await createTestApp({
    settings: { ...settings, HOLDFAST_DIRECT_BYTES: '1', jobWaitSeconds: 1 },
    database: app.database,
    dataDir: app.dataDir,
    overrides: { blobs },
  });
});
afterEach(() => puts.reset());
afterAll(async () => {
  await hasty[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Large enough for the queue of large bodies. */
const sent = deployment(60, 'imported');

function sendImport(to: TestApp, stack: TestStack): Promise<TestResponse> {
  return to.call('POST', `${stack.path}/import`, { auth: stack.auth, body: sent });
}

/** A whole update through `app` that leaves two resources. */
async function up(stack: TestStack): Promise<void> {
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 2, 'newer'));
  await ok(complete(app, update));
}

async function expectState(stack: TestStack, version: number, resources: number): Promise<void> {
  expect((await getStack(app, stack)).version).toBe(version);
  expect(await exportedNames(app, stack)).toHaveLength(resources);
}

/** Waits until the workers are idle and their queues are empty. */
async function untilIdle(): Promise<void> {
  const isIdle = async (): Promise<boolean> => {
    const queues = (await hasty.context.jobQueueView?.overview(1))?.queues ?? [hasty.context.dispatcher.state()];
    return queues.every(({ active, waiting }) => active === 0 && waiting === 0);
  };
  await until(isIdle, 'the jobs are over');
}

async function bodiesHeld(): Promise<number> {
  await hasty.context.payloads.check(60_000);
  return hasty.context.payloads.bytesHeld();
}

/** Sends imports to `hasty`, each of which a worker has in hand before its call ends. */
async function sendWhileHeld(count: number): Promise<{ calls: Promise<TestResponse>[]; stacks: TestStack[] }> {
  for (;;) {
    const stacks = await Promise.all(Array.from({ length: count }, () => createStack(app)));
    puts.hold(count);
    let areOver = false;
    const calls = stacks.map((stack) => sendImport(hasty, stack));
    const over = Promise.all(calls).finally(() => {
      areOver = true;
    });
    await until(() => puts.held.length === count || areOver, 'the workers have them');
    if (puts.held.length === count) return { calls, stacks };
    // On a busy machine a call may end before a worker comes to it.
    await over;
    puts.reset();
    await untilIdle();
  }
}

describe('an import that was answered 503', () => {
  test('is never a version, even if a worker continues with it, and the newer state stays', async () => {
    const { calls, stacks } = await sendWhileHeld(1);
    const [stack] = stacks as [TestStack];
    const [answer] = (await Promise.all(calls)) as [TestResponse];
    expect([answer.status, answer.json.code, puts.held.length]).toEqual([503, 503, 1]);
    expect(answer.json.message).toMatch(/abandoned: nothing was changed/);
    expect(answer.headers['retry-after']).toBeDefined();
    expect(await bodiesHeld()).toBe(0);
    await up(stack);
    puts.reset();
    await untilIdle();
    await expectState(stack, 1, 2);
    expect(await query(app, `select id from updates where kind = 'import'`)).toEqual([]);
  });

  test('is never a version, though it is queued behind others', async () => {
    // In a cluster there are two workers.
    const inHand = isClustered() ? 2 : 1;
    const { calls, stacks } = await sendWhileHeld(inHand);
    while (stacks.length < 3) stacks.push(await createStack(app));
    calls.push(...stacks.slice(inHand).map((stack) => sendImport(hasty, stack)));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(await bodiesHeld()).toBe(0);
    await up(stacks[2] as TestStack);
    puts.reset();
    await untilIdle();
    await expectState(stacks[0] as TestStack, 0, 0);
    await expectState(stacks[1] as TestStack, 0, 0);
    await expectState(stacks[2] as TestStack, 1, 2);
    // The stack is free for the next one.
    await ok(sendImport(app, stacks[2] as TestStack));
    await expectState(stacks[2] as TestStack, 2, 60);
  });
});

describe('a change admitted against an older head', () => {
  test('as an import: 409, and the newer state stays', async () => {
    const stack = await createStack(app);
    puts.hold(1);
    const late = sendImport(app, stack);
    await until(() => puts.held.length === 1, 'the import is held');
    await up(stack);
    puts.reset();
    const answer = await late;
    expect([answer.status, answer.json.code]).toEqual([409, 409]);
    expect(answer.json.message).toMatch(/changed by someone else/);
    await expectState(stack, 1, 2);
  });

  test('as an import before a rename: 409', async () => {
    const stack = await createStack(app);
    puts.hold(1);
    const late = sendImport(app, stack);
    await until(() => puts.held.length === 1, 'the import is held');
    await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }));
    puts.reset();
    expect((await late).status).toBe(409);
    await expectState({ ...stack, path: stack.path.replace(/dev$/, 'moved') }, 1, 0);
  });

  test('as a rename: 409, and the stack keeps its name', async () => {
    const stack = await createStack(app);
    await ok(sendImport(app, stack));
    puts.hold(1);
    const late = app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } });
    await until(() => puts.held.length === 1, 'the rename is held');
    await up(stack);
    puts.reset();
    const answer = await late;
    expect([answer.status, answer.json.code]).toEqual([409, 409]);
    await expectState(stack, 2, 2);
  });

  test('tags may change meanwhile', async () => {
    const stack = await createStack(app);
    puts.hold(1);
    const late = sendImport(app, stack);
    await until(() => puts.held.length === 1, 'the import is held');
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { a: 'b' } }));
    puts.reset();
    await ok(late);
    await expectState(stack, 1, 60);
  });
});

describe('an import as run by a worker', () => {
  async function admitted(stack: TestStack, seconds = 120) {
    const { stateEdits, importer } = app.context;
    const [row] = await query<{ id: string }>(
      app,
      `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
       where o.name = $1`,
      [stack.organization],
    );
    const [clock] = await query<{ deadline: Date }>(
      app,
      'select clock_timestamp() + make_interval(secs => $1) as deadline',
      [seconds],
    );
    const [user] = await query<{ id: string }>(app, 'select id from users limit 1');
    const { id: stackId } = row as { id: string };
    const change = {
      stackId,
      updateId: randomUUID(),
      tokenId: null,
      admission: {
        ...(await stateEdits.findHead(stackId)),
        deadline: (clock as { deadline: Date }).deadline.toISOString(),
      },
    };
    const body = bytesOf(Buffer.from(JSON.stringify(sent)));
    const requestedBy = (user as { id: string }).id;
    return { change, run: () => importer.import({ ...change, requestedBy, body, encoding: 'identity' }) };
  }

  /** The response to the caller of the change after a fault. */
  async function outcomeFor(updateId: string): Promise<'committed' | 'failed'> {
    const fault = new UnavailableError('a fault');
    return app.context.stateEdits.resolveFailure(updateId, fault).then(
      () => 'committed',
      (error: unknown) => {
        if (error !== fault) throw error;
        return 'failed';
      },
    );
  }

  test('creates one version when it is run twice, at once or later', async () => {
    const stack = await createStack(app);
    const { change, run } = await admitted(stack);
    await Promise.all([run(), run()]);
    await run();
    await expectState(stack, 1, 60);
    expect(await outcomeFor(change.updateId)).toBe('committed');
    await up(stack);
    await run();
    await expectState(stack, 2, 2);
  });

  test('is rejected each time once its caller was informed that it failed', async () => {
    const stack = await createStack(app);
    const { change, run } = await admitted(stack);
    expect(await outcomeFor(change.updateId)).toBe('failed');
    expect(await outcomeFor(change.updateId)).toBe('failed');
    await expect(run()).rejects.toMatchObject({ status: 409, code: 'given-up' });
    await expect(run()).rejects.toMatchObject({ status: 409, code: 'given-up' });
    await expectState(stack, 0, 0);
  });

  /** Runs an import that is held before its deadline, which is later if the machine is busy. */
  async function runHeld(seconds: number) {
    const stack = await createStack(app);
    const { change, run } = await admitted(stack, seconds);
    puts.hold(1);
    let isOver = false;
    const late = run()
      .catch((error: unknown) => error)
      .finally(() => {
        isOver = true;
      });
    await until(() => puts.held.length === 1 || isOver, 'it is held');
    if (puts.held.length === 1) return { change, late, stack };
    expect(await late).toMatchObject({ code: 'given-up' });
    puts.reset();
    return await runHeld(4 * seconds);
  }

  test('is rejected after its deadline, by the clock of the database', async () => {
    const { change, late, stack } = await runHeld(4);
    const over = 'select 1 where clock_timestamp() > $1::timestamptz';
    await until(async () => (await query(app, over, [change.admission.deadline])).length > 0, 'the deadline is over');
    puts.reset();
    expect(await late).toMatchObject({ status: 409, code: 'given-up' });
    await expectState(stack, 0, 0);
  });

  test('ends as reported to its caller, in any order of commit and fault', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 40; round++) {
      const stack = await createStack(app);
      const { change, run } = await admitted(stack);
      const ran = run().then(
        () => 'committed',
        () => 'failed',
      );
      for (let turn = 0; turn < round; turn++) await app.context.db.ping(5_000);
      const answer = await outcomeFor(change.updateId);
      expect(await ran).toBe(answer);
      await expectState(stack, answer === 'committed' ? 1 : 0, answer === 'committed' ? 60 : 0);
      seen.add(answer);
    }
    expect(seen).toContain('failed');
  });
});

describe('over the wire', () => {
  let server: WireServer;
  beforeAll(async () => {
    server = await WireServer.listen(app);
  });
  const headersOf = (stack: TestStack) => ({
    Authorization: stack.auth,
    Accept: 'application/vnd.pulumi+9',
    'Content-Type': 'application/json',
  });

  test('an import during an update is rejected before its body is sent', async () => {
    const stack = await createStack(app);
    await startUpdate(app, stack);
    for (const length of [100, 10_000_000]) {
      const connection = server.connect();
      await connection.write(head('POST', `${stack.path}/import`, { headers: headersOf(stack), length }));
      expect((await connection.answer())?.status).toBe(409);
      connection.destroy();
    }
  });

  /** Sends the call while the stack is locked and disconnects before it is free. */
  async function leave(stack: TestStack, call: string, body: string): Promise<void> {
    const connections = (): Promise<number> =>
      new Promise((resolve, reject) =>
        app.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      );
    const blocker = new pg.Client({ connectionString: app.database.ownerUrl });
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query(
      `select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
       where o.name = $1 for update of s`,
      [stack.organization],
    );
    try {
      const connection = server.connect();
      await connection.write(head('POST', `${stack.path}/${call}`, { headers: headersOf(stack), length: body.length }));
      await connection.write(body);
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await until(async () => (await query(app, waiting)).length === 1, 'the call waits for the stack');
      connection.destroy();
      await until(async () => (await connections()) === 0, 'the server knows that the client has left');
    } finally {
      await blocker.query('commit');
      await blocker.end();
    }
    const busy = `select 1 from pg_stat_activity where state <> 'idle' and datname = current_database() and pid <> pg_backend_pid()`;
    // Three times in a row: a running call is between two statements now and then.
    let quiet = 0;
    await until(async () => {
      quiet = (await query(app, busy)).length === 0 ? quiet + 1 : 0;
      return quiet >= 30;
    }, 'nothing is running');
  }

  test.each([100, 300_000])(
    'an import whose client has disconnected changes nothing (%p bytes more)',
    async (bytes) => {
      const stack = await createStack(app);
      await leave(stack, 'import', JSON.stringify({ ...sent, note: 'x'.repeat(bytes) }));
      await expectState(stack, 0, 0);
    },
  );

  test('a rename whose client has disconnected changes nothing', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(sent) }));
    await leave(stack, 'rename', JSON.stringify({ newName: 'moved' }));
    await expectState(stack, 1, 60);
  });
});

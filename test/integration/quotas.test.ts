import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { noOverrides, type QuotaOverrides } from '../../src/shared/access/quotas/quotas.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { createIdentityRepository } from '../../src/shared/identity/identity-repository.ts';
import { measureStorage } from '../../src/workers/access/measure-storage.ts';
import { runAdminCommand, runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { creation } from '../support/journal-entries.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import {
  createTestApp,
  createTestDatabase,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';

let database: TestDatabase;
let directory: string;
let gated: Awaited<ReturnType<typeof openGatedBlobs>>;
/** Two replicas on one database. */
let app: TestApp;
let other: TestApp;

beforeAll(async () => {
  database = await createTestDatabase();
  directory = await mkdtemp(path.join(tmpdir(), 'holdfast-quotas-'));
  gated = await openGatedBlobs(directory);
  app = await createTestApp({ database, overrides: { blobs: gated.blobs } });
  other = await createTestApp({ database });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function limit(stack: TestStack, limits: Partial<QuotaOverrides>): Promise<void> {
  const organization = await createIdentityRepository(app.context.db).findOrganization(stack.organization);
  await createQuotaRepository(app.context.db).setOverrides(organization?.id as string, { ...noOverrides, ...limits });
  for (const each of [app, other]) each.context.quotas.forget();
}

/** Another stack in the organization of `stack`. */
async function addStack(on: TestApp, stack: TestStack, name: string): Promise<TestResponse> {
  return on.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: name } });
}

function named(stack: TestStack, name: string): TestStack {
  return { ...stack, stack: name, path: `/api/stacks/${stack.organization}/proj/${name}` };
}

function statuses(answers: readonly TestResponse[]): number[] {
  return answers.map(({ status }) => status).sort();
}

test('stacks: no more than allowed are created on two replicas at once, and one more after a deletion', async () => {
  const stack = await createStack(app);
  await limit(stack, { stacks: 4 });
  const names = Array.from({ length: 10 }, (_, index) => `dev${index}`);
  const answers = await Promise.all(names.map((name, index) => addStack(index % 2 ? app : other, stack, name)));
  expect(statuses(answers)).toEqual([200, 200, 200, ...Array.from({ length: 7 }, () => 409)]);
  const refused = answers.find(({ status }) => status === 409);
  // The CLI searches for these words.
  expect(refused?.json).toMatchObject({ code: 409, message: expect.stringContaining('you are using 4') });
  expect(refused?.json.message).toContain(`admin set-quota ${stack.organization} --stacks`);
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await ok(addStack(other, stack, 'again'));
  expect((await addStack(app, stack, 'more')).status).toBe(409);
  // Other organizations are not affected.
  await createStack(app);
});

test('updates: no more than allowed run at once on two replicas, and the next starts when one has ended', async () => {
  const stack = await createStack(app);
  const stacks = Array.from({ length: 8 }, (_, index) => named(stack, `dev${index}`));
  for (const each of stacks) await ok(addStack(app, stack, each.stack));
  await limit(stack, { updates: 3 });
  const create = (on: TestApp, at: TestStack) => on.call('POST', `${at.path}/update`, { auth: stack.auth, body: {} });
  const answers = await Promise.all(stacks.map((each, index) => create(index % 2 ? app : other, each)));
  expect(statuses(answers)).toEqual([200, 200, 200, 409, 409, 409, 409, 409]);
  const refused = answers.find(({ status }) => status === 409);
  expect(refused?.json.message).toContain(`${stack.organization} may run 3 updates at once, and 3 are running`);
  const at = answers.findIndex(({ status }) => status === 200);
  const running = stacks[at] as TestStack;
  const id = answers[at]?.json.updateID as string;
  // Admitted updates can be started and ended.
  await ok(app.call('POST', `${running.path}/update/${id}`, { auth: stack.auth, body: {} }));
  await ok(cancel(app, running, { path: `${running.path}/update/${id}` }));
  await ok(create(other, running));
  expect((await create(app, stack)).status).toBe(409);
});

test('bytes stored: nothing new starts above the limit; running updates are saved to their end', async () => {
  const stack = await createStack(app);
  await ok(addStack(app, stack, 'running'));
  await ok(addStack(app, stack, 'journaled'));
  const update = await startUpdate(app, named(stack, 'running'));
  const journaled = await startUpdate(app, named(stack, 'journaled'), { journal: true });
  await ok(saveState(app, update, 200, randomBytes(20).toString('hex')));
  await limit(stack, { keptBytes: 1_000 });
  await measureStorage(app.context);
  const begin = (kind: string) => app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, body: {} });
  const refused = await begin('update');
  expect([refused.status, refused.json.message]).toEqual([409, expect.stringContaining('may store 1000 bytes')]);
  expect((await addStack(app, stack, 'more')).status).toBe(409);
  expect((await app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) })).status).toBe(409);
  expect((await begin('preview')).status).toBe(200);
  expect((await begin('destroy')).status).toBe(200);
  await ok(saveState(app, update, 201));
  await ok(append(app, journaled, creation(1, 'r1', named(stack, 'journaled'))));
  await ok(complete(app, update));
  await ok(complete(app, journaled));
  expect(await exportedNames(app, named(stack, 'running'))).toHaveLength(201);
  expect(await exportedNames(app, named(stack, 'journaled'))).toHaveLength(1);
  for (const name of ['running', 'journaled'])
    await ok(app.call('DELETE', `${named(stack, name).path}?force=true`, { auth: stack.auth }));
  await query(app, `update organization_storage set took_ms = 0, measured_at = measured_at - interval '2 minutes'`);
  await measureStorage(app.context);
  await ok(addStack(app, stack, 'more'));
});

test('bytes stored: the archives of policy packs count, and cannot be published above the limit', async () => {
  await createStack(app);
  const stack = await createStack(app);
  const calls = new PolicyCalls(app, stack);
  await limit(stack, { keptBytes: 100_000 });
  await measureStorage(app.context);
  const archive = Buffer.concat([gzipSync(''), randomBytes(100_000)]);
  const begun = [await ok(calls.begin({ tag: '1.0.0' })), await ok(calls.begin({ tag: '2.0.0' }))];
  await ok(calls.upload(begun[0] as TestResponse, archive));
  await ok(calls.complete({ tag: '1.0.0' }));
  for (const refused of [await calls.upload(begun[1] as TestResponse, archive), await calls.begin({ tag: '3.0.0' })])
    expect([refused.status, refused.json.message]).toEqual([
      409,
      expect.stringMatching(/may store 100000 bytes.*: remove stacks or versions of policy packs for good/),
    ]);
  const storage = createStorageRepository(app.context.db);
  const [most, next] = await storage.list(null, 2);
  expect(most).toMatchObject({ organization: stack.organization, packBytes: expect.any(Number) });
  expect(most?.packBytes).toBeGreaterThan(100_000);
  expect(most?.bytes).toBe(
    (most?.stateBytes ?? 0) + (most?.journalBytes ?? 0) + (most?.eventBytes ?? 0) + (most?.packBytes ?? 0),
  );
  const [{ packBytes = 0 } = {}] = await storage.listNewest(1);
  expect(packBytes).toBe(most?.packBytes);
  const place = most && { bytes: most.bytes, organization: most.organization };
  expect(next?.organization).toMatch(/./);
  expect(await storage.list(place ?? null, 1)).toEqual([next]);
  expect((await addStack(app, stack, 'more')).status).toBe(409);
  await ok(calls.call('DELETE', 'policypacks/pack/versions/1.0.0'));
  await ok(calls.upload(begun[1] as TestResponse, archive));
});

test('bytes stored: measurements of a clock that was ahead count no more, and the task ends', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `with added as (insert into organizations (name) select 'ahead' || n from generate_series(1, 60) n returning id)
     insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at, took_ms)
     select id, current_date + 30, 1e12, 0, 0, now() + interval '30 days', 0
     from (select id from added union all select id from organizations where name = $1) o`,
    [stack.organization],
  );
  // Each measurement would be followed by another one: 60 each round, without an end.
  const stop = AbortSignal.timeout(60_000);
  await measureStorage(app.context, stop);
  expect(stop.aborted).toBe(false);
  expect(await createQuotaRepository(app.context.db).findKeptBytes(stack.organization)).toBe(0);
  await query(app, `delete from organizations where name like 'ahead%'`, []);
});

test('bytes stored: an organization is measured although fifty others cannot be, and the task fails because of them', async () => {
  await using own = await createTestApp();
  const { organization } = await createStack(own);
  await measureStorage(own.context);
  await query(own, `insert into organizations (name) select 'stuck' || n from generate_series(1, 50) n`);
  await query(own, `update organization_storage set took_ms = 0, measured_at = measured_at - interval '2 hours'`);
  await query(own, `create function refuse() returns trigger language plpgsql as $$ begin raise 'a fault'; end $$`);
  const [row] = await query<{ id: string }>(own, 'select id from organizations where name = $1', [organization]);
  await query(
    own,
    `create trigger refuse before insert on organization_storage for each row when (new.organization_id <> '${row?.id}')
       execute function refuse()`,
  );
  await expect(measureStorage(own.context)).rejects.toThrow('a fault');
  const old = `select 1 from organization_storage where measured_at < now() - interval '1 hour'`;
  expect(await query(own, old)).toEqual([]);
});

test('bytes stored: an organization that nothing changes is measured once an hour, a changed or deleted stack at once', async () => {
  const stack = await createStack(app);
  await ok(addStack(app, stack, 'other'));
  const update = await startUpdate(app, named(stack, 'other'));
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  await limit(stack, { keptBytes: 1_000_000 });
  const storage = createStorageRepository(app.context.db);
  const [row] = await query<{ id: string }>(app, 'select id from organizations where name = $1', [stack.organization]);
  const id = row?.id as string;
  const isDue = async (): Promise<boolean> => {
    await query(app, `update organization_storage set took_ms = 0, measured_at = measured_at - interval '1 minute'`);
    return (await storage.listDue(50)).includes(id);
  };
  const longAgo = (): Promise<unknown> =>
    query(app, `update stack_changes set changed_at = changed_at - interval '3 hours' where organization_id = $1`, [
      id,
    ]);
  expect(await isDue()).toBe(true);
  await storage.measure(id);
  expect(await isDue()).toBe(true);
  await longAgo();
  expect(await isDue()).toBe(false);
  await query(
    app,
    `update organization_storage set measured_at = measured_at - interval '61 minutes' where organization_id = $1`,
    [id],
  );
  expect(await isDue()).toBe(true);
  await storage.measure(id);
  expect(await isDue()).toBe(false);
  await ok(app.call('DELETE', `${named(stack, 'other').path}?force=true`, { auth: stack.auth }));
  expect(await isDue()).toBe(true);
});

test('requests per second: 429 with a delay for one organization; a running update loses nothing', async () => {
  const [stack, neighbor] = [await createStack(app), await createStack(app)];
  await ok(addStack(app, stack, 'idle'));
  const update = await startUpdate(app, stack);
  await limit(stack, { requestsPerSecond: 1 });
  // Outsiders do not use any of it.
  for (let call = 0; call < 30; call++)
    expect((await app.call('GET', named(stack, 'idle').path, { auth: neighbor.auth })).status).toBe(404);
  const look = (at: TestStack) => app.call('GET', at.path, { auth: at.auth });
  expect((await look(named(stack, 'idle'))).status).toBe(200);
  let refused: TestResponse | null = null;
  await until(async () => {
    const answer = await look(named(stack, 'idle'));
    if (answer.status === 429) refused = answer;
    return refused !== null;
  }, 'the bucket is empty');
  const { headers, json } = refused as unknown as TestResponse;
  expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect(json).toMatchObject({ code: 429, message: expect.stringContaining('may make 1 requests per second') });
  const encrypt = (at: TestStack) =>
    app.call('POST', `${at.path}/encrypt`, { auth: at.auth, body: { plaintext: 'c2VjcmV0' } });
  for (let round = 1; round <= 30; round++) {
    await ok(app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
    await ok(saveState(app, update, round));
    await ok(encrypt(stack));
  }
  await until(async () => (await encrypt(named(stack, 'idle'))).status === 429, 'others are still refused');
  await ok(complete(app, update));
  expect((await look(neighbor)).status).toBe(200);
  const statusesOfCancel = [];
  for (let call = 0; call < 30; call++) statusesOfCancel.push((await cancel(app, stack, update)).status);
  expect(new Set(statusesOfCancel)).toEqual(new Set([204]));
});

test('bytes in flight: the bodies of an organization wait for each other and delay no others', async () => {
  const [stack, neighbor] = [await createStack(app), await createStack(app)];
  await ok(addStack(app, stack, 'second'));
  await limit(stack, { inFlightBytes: 1_000_000 });
  const save = async (at: TestStack) => {
    const update = await startUpdate(app, at);
    const body = Buffer.from(JSON.stringify(deployment(1, randomBytes(350_000).toString('hex'))));
    return app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body });
  };
  const held = () => app.context.payloads.bytesHeld();
  gated.shut();
  try {
    const first = save(stack);
    await until(() => gated.waiting() === 1, 'the first one is on its way');
    const before = held();
    const second = save(named(stack, 'second'));
    const third = save(neighbor);
    await until(() => gated.waiting() === 2, 'that of the neighbor is, too');
    expect(held()).toBe(2 * before);
    const used = new RegExp(
      `^holdfast_quota_used{organization="${stack.organization}",quota="in-flight-bytes"} ${before}$`,
      'm',
    );
    // A busy machine may not answer a scrape in time: the gauge is then left out.
    await until(
      async () => used.test((await app.call('GET', '/metrics', { accept: null })).text),
      'the metrics have the usage',
    );
    gated.open();
    expect(statuses(await Promise.all([first, second, third]))).toEqual([204, 204, 204]);
  } finally {
    gated.open();
  }
});

test('the operator sets limits and sees them with the usage; the metrics have both', async () => {
  const stack = await createStack(app);
  const { organization } = stack;
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 50));
  const set = await runAdminCommand(
    app,
    'set-quota',
    organization,
    '--stacks',
    '1',
    '--updates',
    '7',
    '--bytes',
    '1000000',
  );
  expect(set).toMatchObject({ code: 0, stderr: '' });
  expect(set.stdout).toContain('stacks 1, bytes 1000000, in-flight-bytes default, updates 7');
  const shown = await runAdminCommand(app, 'quotas', organization);
  expect(shown.stdout).toMatch(
    new RegExp(
      `^${organization}: stacks 1 of 1, bytes \\d{3,} of 1000000, in-flight-bytes unlimited \\(default\\), updates 1 of 7,`,
    ),
  );
  // Running servers pick up the change.
  await until(
    async () => (await addStack(app, stack, `s${randomBytes(4).toString('hex')}`)).status === 409,
    'the limit holds',
  );
  const metrics = (await app.call('GET', '/metrics', { accept: null })).text;
  expect(metrics).toContain(`holdfast_quota_limit{organization="${organization}",quota="updates"} 7`);
  expect(metrics).toContain(`holdfast_quota_used{organization="${organization}",quota="updates"} 1`);
  expect(metrics).toMatch(/holdfast_quota_rejections_total\{quota="stacks"\} [1-9]/);

  await runAdminCommand(
    app,
    'set-quota',
    organization,
    '--stacks',
    'unlimited',
    '--updates',
    'default',
    '--bytes',
    'default',
  );
  expect((await runAdminCommand(app, 'quotas', organization)).stdout).toMatch(
    /stacks \d+ of unlimited, .* updates 1 of unlimited \(default\)/,
  );
  for (const [args, message] of [
    [['set-quota', 'nobody', '--stacks', '1'], 'there is no organization "nobody"'],
    [['set-quota', organization, '--stacks', '0'], '--stacks must be a positive whole number'],
  ] as const) {
    expect(await runAdminCommand(app, ...args)).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  }
});

test('limits that two operators set at once are both kept', async () => {
  const { organization } = await createStack(app);
  const first = new pg.Client({ connectionString: app.database.ownerUrl });
  await first.connect();
  await first.query(`begin; select pg_advisory_xact_lock(hashtextextended('holdfast people', 0))`);
  let isDone = false;
  const second = runInProcess(app, 'admin', 'set-quota', organization, '--updates', '7').finally(() => {
    isDone = true;
  });
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
  await until(async () => isDone || (await query(app, waiting)).length > 0, 'the second one waits');
  await first.query(
    `insert into organization_quotas (organization_id, stacks) select id, 9 from organizations where name = '${organization}'
     on conflict (organization_id) do update set stacks = 9`,
  );
  await first.query('commit');
  await first.end();
  expect((await second).stdout).toContain('stacks 9, bytes default, in-flight-bytes default, updates 7');
  expect((await runInProcess(app, 'admin', 'quotas', organization)).stdout).toMatch(/ stacks 1 of 9, .* of 7,/);
});

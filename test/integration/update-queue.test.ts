import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { PolicyPackService } from '../../src/api/policies/policy-pack-service.ts';
import { UpdateQueue } from '../../src/api/updates/queue/update-queue.ts';
import { WaitingMemory } from '../../src/api/updates/queue/waiting-memory.ts';
import { UpdateService } from '../../src/api/updates/update-service.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createUpdateQueueRepository } from '../../src/shared/updates/update-queue-repository.ts';
import { holdInserts, query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stateOf } from '../support/state-index.ts';
import {
  cliAccept,
  createTestApp,
  createTestDatabase,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, expire } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { WireServer } from '../support/wire.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Two replicas. */
let database: TestDatabase;
let apps: [TestApp, TestApp];
let servers: [WireServer, WireServer];
const settings = { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' };

beforeAll(async () => {
  database = await createTestDatabase();
  apps = [await createTestApp({ database, settings }), await createTestApp({ database, settings })];
  servers = [await WireServer.listen(apps[0]), await WireServer.listen(apps[1])];
});
afterAll(async () => {
  for (const app of apps ?? []) await app[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

interface Created {
  readonly status: number;
  readonly location: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
}

/** Asks for an update as the CLI does, and waits as long as the server does. */
async function create(
  at: WireServer,
  stack: TestStack,
  { environment = {}, query = '', signal }: { environment?: object; query?: string; signal?: AbortSignal } = {},
): Promise<Created> {
  const response = await fetch(`${at.url}${stack.path}/update${query}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { authorization: stack.auth, accept: cliAccept, 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { message: 'm', environment } }),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  return {
    status: response.status,
    location: response.headers.get('location'),
    json: text === '' ? null : JSON.parse(text),
  };
}

const waiting = (): number => apps.reduce((sum, { context }) => sum + waitingIn(context.metrics.registry), 0);

function waitingIn(registry: TestApp['context']['metrics']['registry']): number {
  const metric = registry.getSingleMetric('holdfast_update_queue_calls') as unknown as {
    collect(): void;
    hashMap: Record<string, { value: number }>;
  };
  metric.collect();
  return metric.hashMap['']?.value ?? 0;
}

const untilWaiting = (count: number): Promise<void> => until(() => waiting() === count, `${count} calls wait`);

const cancel = (stack: TestStack, updateId: string) =>
  ok(apps[0].call('POST', `${stack.path}/update/${updateId}/cancel`, { auth: stack.auth }));

test('calls at two replicas get the stack in the order of arrival, and learn that they waited', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const calls: Promise<Created>[] = [];
  const order: number[] = [];
  for (let at = 0; at < 6; at++) {
    const call = create(servers[at % 2] as WireServer, stack);
    calls.push(call);
    void call.then(() => order.push(at));
    await untilWaiting(at + 1);
  }
  await cancel(stack, first.id);
  for (const [at, call] of calls.entries()) {
    const { json, status } = await call;
    expect(status).toBe(200);
    expect(json.messages).toHaveLength(1);
    expect(json.messages[0]).toMatchObject({ severity: 'info' });
    const behind = 5 - at;
    const rest = behind === 0 ? '' : `; ${behind} more ${behind === 1 ? 'waits' : 'wait'} for it`;
    expect(json.messages[0].message).toMatch(/^Waited \d+ (s|min) .*, which another update held/);
    expect(json.messages[0].message.endsWith(`another update held${rest}`)).toBe(true);
    await cancel(stack, json.updateID);
  }
  expect(order).toEqual([0, 1, 2, 3, 4, 5]);
});

test('no call overtakes waiting ones, even if the stack is free', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  await cancel(stack, first.id);
  // A call of another process that is about to take the stack.
  const other = crypto.randomUUID();
  await using client = await sqlClient();
  const renew = () =>
    client.query(
      `insert into update_queue_processes values ($1, clock_timestamp() + interval '1 second')
       on conflict (id) do update set alive_until = excluded.alive_until`,
      [other],
    );
  await renew();
  const renewing = setInterval(renew, 200);
  await client.query(
    `insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select stack_id, token_id, $1, clock_timestamp() from updates where id = $2`,
    [other, first.id],
  );
  const calls = [create(servers[0], stack)];
  await untilWaiting(1);
  calls.push(create(servers[1], stack));
  await untilWaiting(2);
  // A wrong notification does not help.
  await client.query(
    `select pg_notify('holdfast_update_queue', id::text) from update_queue_waiters where process_id <> $1`,
    [other],
  );
  const third = create(servers[0], stack);
  await untilWaiting(3);
  await client.query(`delete from update_queue_waiters where process_id = $1`, [other]);
  for (const call of [...calls, third]) {
    const { json, status } = await call;
    expect(status).toBe(200);
    await cancel(stack, json.updateID);
  }
  clearInterval(renewing);
  await client.query(`delete from update_queue_processes where id = $1`, [other]);
});

test('a replica that died while the clock of the database was ahead does not block the queue', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const dead = crypto.randomUUID();
  await using client = await sqlClient();
  await client.query(`insert into update_queue_processes values ($1, clock_timestamp() + interval '1 hour')`, [dead]);
  await client.query(
    `insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select stack_id, token_id, $1, clock_timestamp() from updates where id = $2`,
    [dead, first.id],
  );
  const call = create(servers[0], stack);
  await untilWaiting(1);
  await cancel(stack, first.id);
  const { json, status } = await call;
  expect(status).toBe(200);
  await cancel(stack, json.updateID);
});

test('an entry that its replica could not remove does not block the queue', async () => {
  const stack = await createStack(apps[0]);
  const other = await createStack(apps[0]);
  const [first, otherFirst] = [await startUpdate(apps[0], stack), await startUpdate(apps[0], other)];
  // This call keeps the replica's entries alive.
  const waits = create(servers[0], other);
  await untilWaiting(1);
  await using client = await sqlClient();
  await client.query(
    `insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select u.stack_id, w.token_id, w.process_id, clock_timestamp() from update_queue_waiters w, updates u where u.id = $1`,
    [first.id],
  );
  const call = create(servers[1], stack);
  await untilWaiting(2);
  await cancel(stack, first.id);
  const { json, status } = await call;
  expect(status).toBe(200);
  await cancel(stack, json.updateID);
  await cancel(other, otherFirst.id);
  await cancel(other, (await waits).json.updateID);
});

test('a call whose client has gone loses its position', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const client = new AbortController();
  const gone = create(servers[0], stack, { signal: client.signal });
  gone.catch(() => {});
  await untilWaiting(1);
  const stays = create(servers[1], stack);
  await untilWaiting(2);
  client.abort();
  await untilWaiting(1);
  await cancel(stack, first.id);
  const { json } = await stays;
  expect(json.messages[0].message).toMatch(/another update held$/);
  await cancel(stack, json.updateID);
});

test('a call that waits too long learns who holds the stack, since when and from which CI run', async () => {
  const stack = await createStack(apps[0]);
  await ok(apps[0].call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'lock-wait': '1s' } }));
  const environment = { 'ci.system': 'X', 'ci.build.url': 'https://ci.example/7' };
  const body = { metadata: { message: '', environment } };
  const held = await ok(apps[0].call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
  const refused = await create(servers[0], stack);
  expect(refused.status).toBe(409);
  expect(refused.json.message).toMatch(
    /^Conflict: Another update is currently in progress\. admin-\w+'s update has held the stack since 20\S+Z \(https:\/\/ci\.example\/7\)\. This one gave up after 1 s, at position 1 of the queue\. Wait until/,
  );
  await ok(apps[0].call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'lock-wait': '0' } }));
  const atOnce = await create(servers[0], stack);
  expect(atOnce.status).toBe(409);
  expect(atOnce.json.message).toMatch(/in progress\. admin-\w+'s update has held the stack since \S+ \(\S+\)\. Wait/);
  await cancel(stack, held.json.updateID);
  const wrong = await apps[0].call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'lock-wait': 'long' } });
  expect(wrong.status).toBe(400);
});

test('a wait ends with a redirect that keeps the queue position', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' } });
  const server = await WireServer.listen(short);
  const { location, status } = await create(server, stack);
  expect(status).toBe(307);
  expect(location).toMatch(/^\?entry=[0-9a-f-]{36}&hop=1$/);
  const later = create(servers[0], stack);
  await untilWaiting(1);
  const again = create(servers[1], stack, { query: location as string });
  await untilWaiting(2);
  await cancel(stack, first.id);
  const { json } = await again;
  expect(json.messages[0].message).toMatch(/; 1 more waits for it$/);
  await cancel(stack, json.updateID);
  await cancel(stack, (await later).json.updateID);
});

test('a call for whose next wait there is no memory gives up its queue position', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' } });
  const { location } = await create(await WireServer.listen(short), stack);
  const holding = jest.spyOn(WaitingMemory.prototype, 'hold').mockImplementationOnce(() => {
    throw new UnavailableError('Too many runs wait');
  });
  expect((await create(servers[0], stack, { query: location as string })).status).toBe(503);
  holding.mockRestore();
  expect(
    await query(apps[0], `select id from update_queue_waiters where id = $1`, [location?.match(/entry=([^&]*)/)?.[1]]),
  ).toEqual([]);
  await cancel(stack, first.id);
});

test('the queue entry of another caller, and a lost one, become new entries', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' } });
  const server = await WireServer.listen(short);
  const { location } = await create(server, stack);
  const before = create(servers[0], stack);
  await untilWaiting(1);
  const auth = `token ${await apps[0].createUser(stack.organization, 'member')}`;
  const other = create(servers[1], { ...stack, auth }, { query: location as string });
  await untilWaiting(2);
  const unknown = create(servers[1], stack, { query: `?entry=${crypto.randomUUID()}&hop=1` });
  await untilWaiting(3);
  await cancel(stack, first.id);
  for (const call of [before, other, unknown]) {
    const { json, status } = await call;
    expect(status).toBe(200);
    await cancel(stack, json.updateID);
  }
  expect((await create(servers[0], stack, { query: '?entry=x' })).status).toBe(400);
});

test('a caller without the permission to change the stack takes no position in its queue, whatever entry it names', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const { auth, organizationId, userId } = await person(apps[0], stack.organization, 'viewer');
  await grant(apps[0], organizationId, { userId }, 'allow', ['preview']);
  const entering = jest.spyOn(UpdateQueue.prototype, 'enter');
  for (const entry of ['', `?entry=${crypto.randomUUID()}&hop=1`, `?entry=${crypto.randomUUID()}&hop=9`])
    expect(await create(servers[0], { ...stack, auth }, { query: entry })).toMatchObject({
      status: 403,
      json: { message: expect.stringContaining('needs the permission write') },
    });
  expect(entering).not.toHaveBeenCalled();
  entering.mockRestore();
  await cancel(stack, first.id);
});

test('the queue entry of another stack stays there, and the call gets a new one', async () => {
  const stack = await createStack(apps[0]);
  const other = { ...stack, stack: 'other', path: stack.path.replace(/dev$/, 'other') };
  await ok(
    apps[0].call('POST', `/api/stacks/${stack.organization}/proj`, {
      auth: stack.auth,
      body: { stackName: other.stack },
    }),
  );
  const [first, otherFirst] = [await startUpdate(apps[0], stack), await startUpdate(apps[0], other)];
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' } });
  const { location } = await create(await WireServer.listen(short), stack);
  const wrong = create(servers[0], other, { query: location as string });
  await untilWaiting(1);
  const entries = await query<{ id: string; is_of_stack: boolean }>(
    apps[0],
    `select w.id, w.stack_id = u.stack_id as is_of_stack from update_queue_waiters w join updates u using (token_id)
     where u.id = $1 order by w.number`,
    [first.id],
  );
  expect(entries.map(({ is_of_stack }) => is_of_stack)).toEqual([true, false]);
  await cancel(other, otherFirst.id);
  const { json, status } = await wrong;
  expect(status).toBe(200);
  await cancel(other, json.updateID);
  await cancel(stack, first.id);
});

test('a replica changes entries only while they are its own, and a client that comes too late has lost its position', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const entries = createUpdateQueueRepository(apps[0].context.db);
  const [row] = await query<{ stack_id: string; token_id: string }>(
    apps[0],
    'select stack_id, token_id from updates where id = $1',
    [first.id],
  );
  const owner = { stackId: row?.stack_id as string, tokenId: row?.token_id as string };
  const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];
  for (const process of [one, other]) await entries.renewProcess(process, 60);
  const id = crypto.randomUUID();
  const shown = { kind: 'update', commit: null, branch: null, url: null };
  await entries.join({
    ...owner,
    id,
    processId: one,
    isUrgent: false,
    run: null,
    shown,
    tags: '{}',
    waitSeconds: 1,
    supersedes: false,
  });
  await entries.keep(id, one, 60);
  expect(await entries.resume(id, { ...owner, processId: other })).toMatchObject({ id });
  await entries.keep(id, one, 60);
  await entries.removeAbandoned(one, [id]);
  expect(await entries.listOf(other)).toEqual([{ id, isSuperseded: false }]);
  await entries.keep(id, other, -1);
  expect(await entries.resume(id, { ...owner, processId: other })).toBeNull();
  await entries.removeGone();
  expect(await query(apps[0], 'select 1 from update_queue_waiters where id = $1', [id])).toEqual([]);
  for (const process of [one, other]) await entries.removeProcess(process);
  await cancel(stack, first.id);
});

test('a replica that stops passes its calls on, and one that dies does not stop the others', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const stopping = await createTestApp({ database, settings });
  const calls = [create(await WireServer.listen(stopping), stack)];
  await until(() => waitingIn(stopping.context.metrics.registry) === 1, 'the call waits');
  // As a process that has died: its place stays, and nobody renews it.
  const dead = crypto.randomUUID();
  await using client = await sqlClient();
  await client.query(`insert into update_queue_processes values ($1, clock_timestamp() + interval '1 second')`, [dead]);
  await client.query(
    `insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select s.id, t.id, $1, clock_timestamp() from stacks s, api_tokens t
     where s.active_update_id = $2 and t.id = (select token_id from updates where id = $2)`,
    [dead, first.id],
  );
  const behind = create(servers[0], stack);
  await untilWaiting(1);
  await stopping[Symbol.asyncDispose]();
  const passed = await (calls[0] as Promise<Created>);
  expect(passed.status).toBe(307);
  const again = create(servers[1], stack, { query: passed.location as string });
  await untilWaiting(2);
  await cancel(stack, first.id);
  const { json } = await again;
  await cancel(stack, json.updateID);
  const last = await behind;
  expect(last.status).toBe(200);
  await cancel(stack, last.json.updateID);
});

test('a stack whose update has lost its lease goes to the first waiting call', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const waits = create(servers[0], stack);
  await untilWaiting(1);
  await using client = await sqlClient();
  await client.query(`update updates set expires_at = now() - interval '1 second' where id = $1`, [first.id]);
  const { json, status } = await waits;
  expect(status).toBe(200);
  await cancel(stack, json.updateID);
});

test('a slow compaction of one stack does not cost waiting calls for others their turn', async () => {
  const [slow, busy] = [await createStack(apps[0]), await createStack(apps[0])];
  const lost = await startUpdate(apps[0], slow, { journal: true });
  await ok(append(apps[0], lost, creation(1, 'r', slow)));
  const held = await startUpdate(apps[0], busy);
  const first = create(servers[0], busy);
  await untilWaiting(1);
  const next = create(servers[0], slow);
  await untilWaiting(2);
  await using gate = await holdInserts(apps[0], 'checkpoints');
  await expire(apps[0], lost.id);
  await gate.reached(1);
  const later = create(servers[1], busy);
  const [clock] = await query(apps[0], `select clock_timestamp() + interval '4 seconds' as later`);
  await until(async () => {
    const [alive] = await query(
      apps[0],
      `select count(*) = 2 and bool_and(p.alive_until > $2) as "isLate" from update_queue_waiters w join update_queue_processes p on p.id = w.process_id
       where w.stack_id = (select stack_id from updates where id = $1)`,
      [held.id, clock?.['later']],
    );
    return alive?.['isLate'] === true;
  }, 'both replicas are renewed while the compaction waits');
  await cancel(busy, held.id);
  const { json, status } = await first;
  expect({ status, message: json.messages[0].message }).toEqual({
    status: 200,
    message: expect.stringMatching(/; 1 more waits for it$/),
  });
  await gate.release();
  await cancel(slow, (await next).json.updateID);
  await cancel(busy, json.updateID);
  await cancel(busy, (await later).json.updateID);
});

test('a call whose entry is lost gets it back, before later calls', async () => {
  const stack = await createStack(apps[0]);
  const held = await startUpdate(apps[0], stack);
  const calls = [create(servers[0], stack)];
  await untilWaiting(1);
  calls.push(create(servers[1], stack));
  await untilWaiting(2);
  const entries = () =>
    query(
      apps[0],
      `select id, number, process_id, token_id, is_urgent, run, shown, tags, wait_seconds
       from update_queue_waiters where stack_id = (select stack_id from updates where id = $1) order by number`,
      [held.id],
    );
  const before = await entries();
  await query(apps[0], 'delete from update_queue_waiters where id = $1', [before[0]?.['id']]);
  await until(async () => (await entries()).length === 2, 'the entry is back');
  expect(await entries()).toEqual(before);
  await cancel(stack, held.id);
  for (const [at, call] of calls.entries()) {
    const { json, status } = await call;
    expect(status).toBe(200);
    expect(json.messages[0].message).toMatch(at === 0 ? /; 1 more waits for it$/ : /another update held$/);
    await cancel(stack, json.updateID);
  }
});

test('a call continues to wait and keeps its position when the database fails for a moment', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' } });
  const server = await WireServer.listen(short);
  await using client = await sqlClient();
  await client.query(`create sequence failures`);
  await client.query(`create function fail_once() returns trigger language plpgsql security definer as $$
    begin
      if nextval('failures') = 1 then raise exception 'the disk is full' using errcode = '53100'; end if;
      return coalesce(new, old);
    end $$`);
  await client.query(`create trigger fail_once before update of process_id or delete on update_queue_waiters
    for each row execute function fail_once()`);
  try {
    const redirected = await create(server, stack);
    expect(redirected.status).toBe(307);
    const again = create(servers[0], stack, { query: redirected.location as string });
    await untilWaiting(1);
    const later = create(servers[1], stack);
    await untilWaiting(2);
    const [kept] = await query(apps[0], `select last_value::integer as uses from failures`);
    expect(kept?.['uses']).toBeGreaterThan(1);
    await client.query(`alter sequence failures restart`);
    await cancel(stack, first.id);
    const { json, status } = await again;
    expect({ status, message: json.messages?.[0].message }).toEqual({
      status: 200,
      message: expect.stringMatching(/; 1 more waits for it$/),
    });
    await cancel(stack, json.updateID);
    await cancel(stack, (await later).json.updateID);
  } finally {
    await client.query(`drop function fail_once cascade`);
    await client.query(`drop sequence failures`);
  }
});

test('a token that is revoked, and a stack that is deleted, end the waiting', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const auth = `token ${await apps[0].createUser(stack.organization, 'member')}`;
  const revoked = create(servers[0], { ...stack, auth });
  await untilWaiting(1);
  await using client = await sqlClient();
  await client.query(
    `update api_tokens set revoked_at = now() where id = (select token_id from update_queue_waiters order by number desc limit 1)`,
  );
  const waits = create(servers[1], stack);
  await untilWaiting(2);
  await cancel(stack, first.id);
  expect((await revoked).status).toBe(401);
  await cancel(stack, (await waits).json.updateID);
  const second = await startUpdate(apps[0], stack);
  const left = create(servers[1], stack);
  await untilWaiting(1);
  await client.query(`update stacks set active_update_id = null, deleted_at = now() where active_update_id = $1`, [
    second.id,
  ]);
  expect((await left).status).toBe(404);
});

test('previews and clients of the contract do not wait', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const preview = await apps[0].call('POST', `${stack.path}/preview`, { auth: stack.auth, body: {} });
  expect(preview.status).toBe(200);
  const contract = await apps[0].call('POST', `${stack.path}/update`, {
    auth: stack.auth,
    accept: 'application/vnd.service+8',
    body: { config: {}, metadata: { message: '', environment: {} }, name: 'p', runtime: 'nodejs' },
  });
  expect(contract.status).toBe(409);
  await cancel(stack, first.id);
});

test('a call learns which policy packs are required at its turn', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const waits = create(servers[0], stack);
  await untilWaiting(1);
  const policies = new PolicyCalls(apps[0], stack);
  await policies.publish({ name: 'pack' });
  await ok(policies.enable({ name: 'pack' }));
  await cancel(stack, first.id);
  const { json } = await waits;
  expect(json.requiredPolicies).toEqual([expect.objectContaining({ name: 'pack' })]);
  await cancel(stack, json.updateID);
});

test('a waiting call keeps little of its body', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const values = (count: number) => Array.from({ length: count }, () => []);
  const environment = { 'git.head': 'a'.repeat(40), values: values(50_000) };
  const program = {
    options: { values: values(150_000) },
    config: { values: values(50_000) },
    metadata: { environment },
  };
  const body = (path: string) =>
    JSON.stringify(path === 'update' ? program : { updateKind: 'update', program, tags: { a: 'x' } });
  const heap = (): number => {
    collectGarbage();
    return memoryUsage().heapUsed / 1024 / 1024;
  };
  const calls: Promise<TestResponse>[] = [];
  let before = 0;
  for (const [at, path] of ['update', 'update', 'begin-update'].entries()) {
    const headers = { 'content-type': 'application/json' };
    const sent = Buffer.from(body(path));
    const call = apps[0].call('POST', `${stack.path}/${path}`, { auth: stack.auth, headers, body: sent });
    calls.push(call);
    const answered = call.then(({ status, text }) => Promise.reject(new Error(`${status}: ${text}`)));
    await Promise.race([untilWaiting(at + 1), answered]);
    answered.catch(() => {});
    if (at === 0) before = heap();
  }
  expect(heap() - before).toBeLessThan(8);
  await cancel(stack, first.id);
  for (const call of calls) await cancel(stack, (await ok(call)).json.updateID);
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('the connection of a silent client is checked', async () => {
  const [server] = servers;
  const connection = server.connect();
  const hexPort = server.port.toString(16).toUpperCase().padStart(4, '0');
  // Established connections at this port, with the kind of their timer: 2 checks whether the other side is alive.
  const timers = async () =>
    (await readFile('/proc/net/tcp', 'utf8'))
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(`:${hexPort}`) && state === '01')
      .map((parts) => parts[5]?.slice(0, 2));
  await until(async () => (await timers()).length > 0, 'the server has the connection');
  expect(new Set(await timers())).toEqual(new Set(['02']));
  connection.destroy();
});

test('a call whose policies cannot be read at its turn leaves no update', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const waits = create(servers[0], stack);
  await untilWaiting(1);
  const listing = jest
    .spyOn(PolicyPackService.prototype, 'listRequired')
    .mockRejectedValueOnce(new UnavailableError('The database is not available'));
  await cancel(stack, first.id);
  expect((await waits).status).toBe(503);
  expect((await create(servers[0], stack)).status).toBe(200);
  listing.mockRestore();
});

test('an outage at the turn of a call leaves no update that its client does not know', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const outage = Object.assign(new Error('the disk is full'), { code: '53100' });
  const listing = jest.spyOn(PolicyPackService.prototype, 'listRequired');
  const short = create(servers[0], stack);
  await untilWaiting(1);
  listing.mockRejectedValueOnce(outage);
  await cancel(stack, first.id);
  const { json, status } = await short;
  expect(status).toBe(200);
  const long = create(servers[0], stack);
  await untilWaiting(1);
  listing.mockRejectedValueOnce(new UnavailableError('The database is not available'));
  const withdrawing = jest.spyOn(UpdateService.prototype, 'withdraw').mockRejectedValueOnce(outage);
  await cancel(stack, json.updateID);
  expect((await long).status).toBe(503);
  listing.mockRestore();
  withdrawing.mockRestore();
  const left = `select from updates where status = 'not started' and stack_id = (select stack_id from updates where id = $1)`;
  await until(async () => (await query(apps[0], left, [first.id])).length === 0, 'the update has ended');
});

test('an outage at the turn of a call whose client leaves then keeps no update', async () => {
  const stack = await createStack(apps[0]);
  const first = await startUpdate(apps[0], stack);
  const client = new AbortController();
  const request = once(apps[0].app.server, 'request');
  const gone = create(servers[0], stack, { signal: client.signal });
  gone.catch(() => {});
  const [, response] = (await request) as [unknown, ServerResponse];
  await untilWaiting(1);
  const listing = jest.spyOn(PolicyPackService.prototype, 'listRequired').mockImplementationOnce(async () => {
    const closed = once(response, 'close');
    client.abort();
    await closed;
    return [];
  });
  const outage = Object.assign(new Error('the disk is full'), { code: '53100' });
  const withdrawing = jest.spyOn(UpdateService.prototype, 'withdraw').mockRejectedValueOnce(outage);
  await cancel(stack, first.id);
  await until(async () => withdrawing.mock.results.length > 0, 'the server tries to end the update');
  const left = `select from updates where status = 'not started' and stack_id = (select stack_id from updates where id = $1)`;
  await until(async () => (await query(apps[0], left, [first.id])).length === 0, 'the update has ended');
  listing.mockRestore();
  withdrawing.mockRestore();
});

test('a destroy is refused for a consumer that was saved while it waited, and is not indexed', async () => {
  const stack = await createStack(apps[0]);
  const { auth, organization } = stack;
  await setRule(apps[0], stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const first = await startUpdate(apps[0], stack);
  const waits = apps[0].call('POST', `${stack.path}/destroy`, { auth, body: {} });
  await untilWaiting(1);
  // What was checked a second ago is not checked again.
  const checkedAt = performance.now();
  await until(() => performance.now() - checkedAt > 1_100, 'the checks are no longer fresh');
  await ok(apps[0].call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: 'shop' } }));
  const body = stateOf({ ...stack, project: 'apps', stack: 'shop' }, [
    { name: 'network', type: 'pulumi:pulumi:StackReference', inputs: { name: `${organization}/proj/dev` } },
  ]);
  await ok(apps[0].call('POST', `/api/stacks/${organization}/apps/shop/import`, { auth, body }));
  await cancel(stack, first.id);
  const { json, status } = await waits;
  expect([status, json.message]).toEqual([409, expect.stringContaining(`may be read by ${organization}/apps/shop`)]);
});

test('a call gets its redirect in time, even if the checks before its turn last longer', async () => {
  await using short = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '3' } });
  const stack = await createStack(apps[0]);
  const { auth, organization } = stack;
  await setRule(apps[0], stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const first = await startUpdate(apps[0], stack);
  const waits = short.call('POST', `${stack.path}/destroy`, { auth, body: {} });
  await until(() => waitingIn(short.context.metrics.registry) === 1, 'the call waits');
  const checkedAt = performance.now();
  await ok(apps[0].call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: 'shop' } }));
  const body = stateOf({ ...stack, project: 'apps', stack: 'shop' }, []);
  await ok(apps[0].call('POST', `/api/stacks/${organization}/apps/shop/import`, { auth, body }));
  await until(() => performance.now() - checkedAt > 1_100, 'the checks are no longer fresh');
  await cancel(stack, first.id);
  expect((await waits).status).toBe(307);
});

async function sqlClient(): Promise<AsyncDisposable & { query(text: string, values?: unknown[]): Promise<unknown> }> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  return {
    query: (text, values) => client.query(text, values),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

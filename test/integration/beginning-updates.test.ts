import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { UpdateService } from '../../src/api/updates/update-service.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import type { StackRef } from '../../src/shared/stacks/names.ts';
import { query } from '../support/database.ts';
import { beginning } from '../support/journal-entries.ts';
import { roundTrips, sentStatements } from '../support/sent-statements.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, saveState, saveVerbatim } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { WireServer } from '../support/wire.ts';

let app: TestApp;
let server: WireServer;
let client: pg.Client;
beforeAll(async () => {
  app = await createTestApp();
  server = await WireServer.listen(app);
  client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await prepare();
});
afterAll(async () => {
  await client.end();
  await app[Symbol.asyncDispose]();
});

const environment = { 'ci.system': 'GitHub', 'ci.build.id': '7' };

const beginUpdate = ({ auth, path }: TestStack, body: object) =>
  app.call('POST', `${path}/begin-update`, { auth, body: { updateKind: 'update', program: {}, ...body } });

/** Creates an update, and starts it with `tags`, by two calls or one. Returns its id and lease. */
async function begin(stack: TestStack, tags: object | null, { atOnce = false } = {}) {
  const { auth } = stack;
  const body = { metadata: { message: 'Add "a" \\ b', environment }, config: { a: 1 } };
  if (atOnce) {
    const { updateID: id, ...started } = (await ok(beginUpdate(stack, { program: body, tags, journalVersion: 1 })))
      .json;
    return { id: id as string, path: `${stack.path}/update/${id}`, started, lease: `update-token ${started.token}` };
  }
  const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth, body: { tags, journalVersion: 1 } }));
  return { id: json.updateID as string, path, started: started.json, lease: `update-token ${started.json.token}` };
}

/** What the audit log and the table say of the update, without what differs between any two. */
async function recordOf(stack: TestStack, id: string) {
  const events = await query(
    app,
    `select action, organization, organization_id, object, outcome, actor, user_id, login, token_id, token_name, sign_in, role, granted_by,
       address, ci_run, details::jsonb - 'stackVersion' as details, update_id = $1 as is_of_update
     from audit_events where update_id = $1 order by number`,
    [id],
  );
  const updates = await query(
    app,
    `select kind, dry_run, exclusive, status, end_reason, message, environment, config, program, requested_by, epoch, journal_version,
       token_id, organization_id, ci_run, is_limited, waited_ms, stack_version - base_stack_version as versions,
       base_checkpoint_id = checkpoint_id as at_base, round(extract(epoch from expires_at - started_at)) as lease_seconds,
       round(extract(epoch from must_end_at - started_at)) as most_seconds, octet_length(lease_hash) as hash_bytes,
       (select active_update_id = $1 from stacks where id = stack_id) as holds,
       (select count(*)::integer from journals where update_id = $1) as journals
     from updates where id = $1`,
    [id],
  );
  return { events, updates, stack: stack.path };
}

test('an update begins with few statements', async () => {
  const stack = await createStack(app);
  const names = await sentStatements(() => startUpdate(app, stack, { journal: true }));
  expect(names).toEqual([...['START TRANSACTION', 'updates.insert', 'COMMIT'], 'updates.start']);
});

test('an update is created, and its stack read, in few round trips', async () => {
  const stack = await createStack(app);
  const { auth } = stack;
  const ofCalls = /^(START|COMMIT|(audit|identity|journals|policyPacks|stacks|updateRules|updates)\.)/;
  expect(await roundTrips(() => ok(app.call('GET', stack.path, { auth })), ofCalls)).toEqual([
    ['identity.findCaller'],
    ['stacks.findWithFaults'],
  ]);
  const create = () => ok(app.call('POST', `${stack.path}/update`, { auth, body: {} }));
  expect(await roundTrips(create, ofCalls)).toEqual([
    ['identity.findCaller'],
    ['policyPacks.listRequired', 'updateRules.findStack'],
    ['START TRANSACTION'],
    ['identity.lockAccess'],
    ['updateRules.lockStack'],
    ['updates.insert'],
    ['COMMIT'],
  ]);
});

test('an update is recorded as it has begun, with and without rules and new tags', async () => {
  const stack = await createStack(app);
  const { auth } = stack;
  await ok(app.call('POST', `${stack.path}/import`, { auth, body: deployment(2) }));
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth, body: { a: '1' } }));
  const first = await begin(stack, { a: '1' });
  const ofFirst = await recordOf(stack, first.id);
  expect(ofFirst).toMatchObject({
    events: [
      { action: 'update.create', is_of_update: true, ci_run: '{"system":"GitHub","build.id":"7"}' },
      { action: 'update.start', is_of_update: true, details: { kind: 'update', dryRun: false } },
    ],
    updates: [{ status: 'running', holds: true, at_base: true, journals: 1, versions: 1, message: 'Add "a" \\ b' }],
  });
  await ok(complete(app, { ...first, version: 1 }));
  const scope = { project: 'proj', stack: 'dev' };
  await setRule(app, stack, { kind: 'wait-alert', settings: { seconds: 60 }, ...scope });
  const second = await begin(stack, { a: '2' });
  expect(await recordOf(stack, second.id)).toEqual(ofFirst);
  expect((await getStack(app, stack)).tags).toMatchObject({ a: '2' });
  expect(Object.keys(second.started)).toEqual(Object.keys(first.started));
  expect(second.started.version).toBe(first.started.version + 1);
});

describe('one call that creates and starts an update', () => {
  test('sends few statements', async () => {
    const stack = await createStack(app);
    const names = await sentStatements(() => ok(beginUpdate(stack, { journalVersion: 1 })));
    expect(names).toEqual([...['START TRANSACTION', 'updates.insert', 'COMMIT'], ...['stacks.find', 'updates.start']]);
  });

  test('records the same as two calls', async () => {
    const stack = await createStack(app);
    const { auth } = stack;
    await ok(app.call('POST', `${stack.path}/import`, { auth, body: deployment(2) }));
    const one = await begin(stack, { a: '1' }, { atOnce: true });
    const ofOne = await recordOf(stack, one.id);
    expect(ofOne.updates).toMatchObject([{ status: 'running', holds: true }]);
    await ok(complete(app, { ...one, version: 1 }));
    const two = await begin(stack, { a: '1' });
    expect(await recordOf(stack, two.id)).toEqual(ofOne);
    const { requiredPolicies, messages, stack: shown, ...started } = one.started;
    expect({ requiredPolicies, messages }).toEqual({ requiredPolicies: [], messages: [] });
    expect(Object.keys(started).toSorted()).toEqual(Object.keys(two.started).toSorted());
    expect(shown).toMatchObject({ stackName: 'dev', tags: { a: '1' }, version: 1, activeUpdate: one.id });
  });

  test('begins updates of each kind that the CLI has', async () => {
    const stack = await createStack(app);
    const kinds: Record<string, string> = {};
    for (const updateKind of ['update', 'refresh', 'destroy', 'resource-import', 'preview']) {
      const { json } = await ok(beginUpdate(stack, { updateKind }));
      const [row] = await query<{ kind: string }>(app, 'select kind from updates where id = $1', [json.updateID]);
      kinds[updateKind] = row?.kind ?? '';
      await ok(cancel(app, stack, { path: `${stack.path}/update/${json.updateID}` }));
    }
    expect(kinds).toEqual({
      ...{ update: 'update', refresh: 'refresh', destroy: 'destroy', preview: 'preview' },
      'resource-import': 'update',
    });
    expect((await beginUpdate(stack, { updateKind: 'rename' })).status).toBe(400);
  });

  test('leaves nothing behind that holds the stack where it cannot be started', async () => {
    const stack = await createStack(app);
    expect((await beginUpdate(stack, { tags: { '': 'x' } })).status).toBe(400);
    const [row] = await query<{ status: string; events: string[] }>(
      app,
      `select u.status, array(select action from audit_events where update_id = u.id order by number) as events
       from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
         join organizations o on o.id = p.organization_id where o.name = $1`,
      [stack.organization],
    );
    expect(row).toBeUndefined();
    const begun = await ok(beginUpdate(stack, {}));
    const busy = await beginUpdate(stack, {});
    expect(busy.status).toBe(409);
    expect((await getStack(app, stack)).activeUpdate).toBe(begun.json.updateID);
  });
});

describe('one call whose client does not learn of its update', () => {
  /** The update of the stack, with the actions that the audit log has. */
  const left = async (stack: TestStack) => {
    const { rows } = await client.query(
      `select u.status, s.active_update_id is not null as held,
         (select string_agg(action || coalesce(' ' || (details::jsonb ->> 'reason'), ''), ', ' order by number)
          from audit_events where update_id = u.id) as events
       from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
         join organizations o on o.id = p.organization_id where o.name = $1`,
      [stack.organization],
    );
    return rows;
  };
  const started = /updates\.start \*\//;

  test.each([
    ['before it starts', false, 'update.create, update.cancel client-gone'],
    ['while it starts', true, 'update.create, update.start, update.cancel client-gone'],
  ])('ends it if the client leaves %s', async (_, isStarted, events) => {
    const stack = await createStack(app);
    const leaving = new AbortController();
    const response = once(app.app.server, 'request');
    const leave = async (): Promise<void> => {
      const [, answer] = (await response) as [unknown, ServerResponse];
      const closed = once(answer, 'close');
      leaving.abort();
      await closed;
    };
    using _changed = isStarted ? changeStart(started, leave) : changeFind(leave);
    const call = fetch(`${server.url}${stack.path}/begin-update`, {
      method: 'POST',
      headers: { authorization: stack.auth, accept: cliAccept, 'content-type': 'application/json' },
      body: JSON.stringify({ updateKind: 'update', program: {}, journalVersion: 1 }),
      signal: leaving.signal,
    });
    await expect(call).rejects.toThrow('aborted');
    await until(async () => (await left(stack))[0]?.status === 'cancelled', 'the update has ended');
    expect(await left(stack)).toEqual([{ status: 'cancelled', held: false, events }]);
  });

  test('ends it if it is unknown whether it has started', async () => {
    const stack = await createStack(app);
    using _changed = changeStart(started, () => Promise.reject(new Error('The connection is lost')));
    expect((await beginUpdate(stack, { journalVersion: 1 })).status).toBe(500);
    const events = 'update.create, update.start, update.cancel not-started';
    expect(await left(stack)).toEqual([{ status: 'cancelled', held: false, events }]);
  });

  /** Calls the route over the wire. `before` runs before the rest of the response is sent, with what the response says. */
  const callWire = async (
    { auth, path }: TestStack,
    route: Route,
    how: { part?: boolean; error?: boolean; journalVersion?: number },
    before: (answer: ServerResponse, body: string, leave: () => void) => Promise<unknown>,
  ): Promise<void> => {
    let target = `${path}/${route}`;
    let body: object = { updateKind: 'update', program: {}, journalVersion: how.journalVersion ?? 1 };
    if (route !== 'begin-update') body = {};
    if (route === 'start') {
      const { json } = await ok(app.call('POST', `${path}/update`, { auth, body: {} }));
      target = `${path}/update/${json.updateID}`;
    }
    const leaving = new AbortController();
    app.app.server.prependOnceListener('request', (_, answer: ServerResponse) => {
      const { end, writeHead } = answer;
      if (how.error) answer.writeHead = (() => writeHead.call(answer, 500)) as typeof writeHead;
      answer.end = ((text: string) => {
        const sent = how.part ? text.length / 2 : 0;
        if (how.part) answer.write(text.slice(0, sent));
        void before(answer, text, () => leaving.abort()).then(() => end.call(answer, text.slice(sent), 'utf8'));
        return answer;
      }) as typeof end;
    });
    const call = fetch(`${server.url}${target}`, {
      method: 'POST',
      headers: {
        authorization: auth,
        accept: cliAccept,
        'content-type': 'application/json',
        'accept-encoding': 'identity',
      },
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
    const text = call.then((answer) => answer.text());
    if (how.error) await text;
    else await expect(text).rejects.toThrow('aborted');
  };
  type Route = 'begin-update' | 'start' | 'update';
  const leaves = async (answer: ServerResponse, _: string, leave: () => void) => {
    const closed = once(answer, 'close');
    leave();
    await closed;
  };

  test.each<[Route, string, { part?: boolean; error?: boolean }]>([
    ['begin-update', 'before the response', {}],
    ['begin-update', 'during the response', { part: true }],
    ['begin-update', 'with an error as response', { error: true }],
    ['start', 'before the response', {}],
    ['start', 'during the response', { part: true }],
    ['update', 'before the response', {}],
    ['update', 'during the response', { part: true }],
  ])('ends it if the call %s ends %s', async (route, _, how) => {
    const stack = await createStack(app);
    await callWire(stack, route, how, how.error ? async () => {} : leaves);
    await until(async () => (await left(stack))[0]?.status === 'cancelled', 'the update has ended');
    const events = ['update.create', ...(route === 'update' ? [] : ['update.start']), 'update.cancel client-gone'];
    expect(await left(stack)).toEqual([{ status: 'cancelled', held: false, events: events.join(', ') }]);
    expect((await beginUpdate(stack, {})).status).toBe(200);
  });

  test.each<[string, string, (update: RunningUpdate) => Promise<TestResponse>, number?]>([
    ['renews it', 'running', ({ lease, path }) => app.call('POST', `${path}/renew_lease`, { auth: lease, body: {} })],
    ['adds an entry', 'running', (update) => append(app, update, [beginning(1, 1)])],
    ['saves its state', 'running', (update) => saveState(app, update, 1), 0],
    ['saves its state with a number', 'running', (update) => saveVerbatim(app, update, 1), 0],
    ['completes it', 'succeeded', (update) => complete(app, update)],
  ])('keeps it if the holder of its lease %s', async (_, status, useLease, journalVersion = 1) => {
    const stack = await createStack(app);
    const withdrawal = jest.spyOn(UpdateService.prototype, 'withdrawUnanswered');
    await callWire(stack, 'begin-update', { part: true, journalVersion }, async (answer, text, leave) => {
      const { token, updateID: id, version } = JSON.parse(text);
      await ok(useLease({ id, path: `${stack.path}/update/${id}`, lease: `update-token ${token}`, version }));
      await leaves(answer, text, leave);
    });
    await until(async () => withdrawal.mock.results.length > 0, 'the server tries to end it');
    await withdrawal.mock.results[0]?.value;
    withdrawal.mockRestore();
    expect(await left(stack)).toMatchObject([{ status }]);
  });

  test('says why it was not started, also where it cannot be ended', async () => {
    const stack = await createStack(app);
    const { db } = app.context as unknown as { db: { inTransaction: unknown } };
    const { inTransaction } = db;
    using _changed = changeFind(async () => {
      db.inTransaction = () => Promise.reject(new Error('The database is away'));
    });
    const { json, status } = await beginUpdate(stack, { tags: { '': 'x' } });
    db.inTransaction = inTransaction;
    expect({ status, message: json.message }).toEqual({ status: 400, message: expect.stringMatching(/tag/i) });
  });
});

/** Lets `then` run after the next statement of this kind, before its result is known to the caller. */
function changeStart(pattern: RegExp, then: () => Promise<void>): Disposable {
  const { db } = app.context as unknown as { db: { one: Queryable['one'] } };
  const { one } = db;
  db.one = (async (query: Parameters<Queryable['one']>[0]) => {
    const row = await one(query);
    if (pattern.test(query.sql)) await then();
    return row;
  }) as Queryable['one'];
  return {
    [Symbol.dispose]: () => {
      db.one = one;
    },
  };
}

/** Lets `then` run after an update was created, before it is started. */
function changeFind(then: () => Promise<void>): Disposable {
  const { stacks } = app.context as unknown as { stacks: { find: (ref: StackRef) => Promise<unknown> } };
  const { find } = stacks;
  stacks.find = async (ref) => {
    const stack = await find(ref);
    const { rows } = await client.query(
      `select 1 from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
         join organizations o on o.id = p.organization_id where o.name = $1`,
      [ref.organization],
    );
    if (rows.length > 0) await then();
    return stack;
  };
  return {
    [Symbol.dispose]: () => {
      stacks.find = find;
    },
  };
}

test('starting an ended update reports how it ended', async () => {
  const stack = await createStack(app);
  const { auth } = stack;
  const startNew = async (end: (update: { id: string; path: string }) => Promise<unknown>) => {
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth, body: {} }));
    const path = `${stack.path}/update/${json.updateID}`;
    await end({ id: json.updateID, path });
    return (await app.call('POST', path, { auth, body: {} })).json;
  };
  const message = (reason: string) => ({ code: 409, message: `This update has ended: ${reason}` });
  expect(await startNew((update) => ok(cancel(app, stack, update)))).toEqual(message('cancelled'));
  expect(await startNew(({ id }) => expire(app, id))).toEqual(message('it was not started in time'));
});

test('tags that stay as they are change nothing of the stack', async () => {
  const stack = await createStack(app);
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { a: '1' } }));
  const changed = () =>
    query(
      app,
      'select updated_at from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1',
      [stack.organization],
    );
  const before = await changed();
  await begin(stack, { a: '1' });
  expect(await changed()).toEqual(before);
});

/** Changes as SQL with names for the stack, the token of its admin and its organization. */
const changes = {
  'the token was revoked': 'update api_tokens set revoked_at = now() where id = :token',
  'the user was deactivated':
    'update users set deactivated_at = now() where id = (select user_id from api_tokens where id = :token)',
  'the caller may only read': `update memberships set role = 'viewer' where organization_id = :organization`,
  'a grant denies it': `insert into grants (organization_id, user_id, effect, permissions) select :organization, user_id, 'deny', 6 from api_tokens where id = :token`,
  'the stack was deleted': 'update stacks set deleted_at = now() where id = :stack',
};
/** Runs `call` in a transaction in which the change was made, and undoes both. */
async function given<T>(change: string | null, ids: readonly string[], call: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const [stack, token, organization] = ids;
    if (change !== null)
      await client.query(
        change
          .replaceAll(':stack', `'${stack}'::uuid`)
          .replaceAll(':token', `'${token}'::uuid`)
          .replaceAll(':organization', `'${organization}'::uuid`),
      );
    return await call();
  } finally {
    await client.query('rollback');
  }
}

/** A stack that has an update to start. */
let held: { readonly stack: TestStack; readonly ids: readonly string[]; readonly updateId: string };
async function prepare(): Promise<void> {
  const stack = await createStack(app);
  const created = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
  held = { stack, ids: await idsOf(stack), updateId: created.json.updateID };
}

describe('what a call that starts an update does', () => {
  const start = async ({ tags = null as string | null, withJournal = true, name = 'dev', isPrepared = false } = {}) => {
    const { ids, stack, updateId } = held;
    const { rows } = await client.query(
      `select outcome, "stackVersion", "journalVersion" from start_update($1, $2, $3, $4, $5, $6, '\\x00', 600, 3600, $7, $8)`,
      [updateId, ids[1], stack.organization, stack.project, name, tags, withJournal, isPrepared],
    );
    const found = await client.query(`select 1 from updates where id = $1 and lease_hash = '\\x00'`, [updateId]);
    expect(found.rowCount === 1).toBe(rows[0]?.outcome === 'started');
    return rows[0];
  };
  const outcomes = async (change: string | null, of: Parameters<typeof start>[0] = {}) => {
    const first = await given(change, held.ids, () => start(of));
    const prepared = await given(change, held.ids, () => start({ ...of, isPrepared: true }));
    return [first.outcome, prepared.outcome];
  };
  const ofUpdate = (set: string) =>
    `update updates set ${set} where id = (select active_update_id from stacks where id = :stack)`;
  const journal = (columns: string, values: string) =>
    `with u as (insert into updates (stack_id, kind, exclusive, status, expires_at) values (:stack, 'update', true, 'failed', now()) returning id)
     insert into journals (update_id, stack_id, entry_count, ${columns}) select id, :stack, 1, ${values} from u`;
  const guarded = (needsJournal: boolean) =>
    `with g as (insert into update_limits (update_id, limits) select active_update_id, '{"needsJournal":${needsJournal}}' from stacks where id = :stack)
     ${ofUpdate('is_limited = true')}`;

  test.each<readonly [name: string, change: string, first: string, prepared?: string]>([
    ['the token was revoked', changes['the token was revoked'], 'no-access'],
    ['the user was deactivated', changes['the user was deactivated'], 'no-access'],
    ['the stack was deleted', changes['the stack was deleted'], 'not-found'],
    ['the caller may only read', changes['the caller may only read'], 'denied'],
    ['a grant denies it', changes['a grant denies it'], 'denied'],
    ['it has ended', ofUpdate(`status = 'cancelled'`), 'not-waiting'],
    ['it runs already', ofUpdate(`status = 'running'`), 'not-waiting'],
    ['its time is over', ofUpdate('expires_at = now()'), 'unprepared', 'not-waiting'],
    ['its permission has ended', ofUpdate(`end_reason = 'grant-ended'`), 'unprepared', 'not-waiting'],
    ['it would wait longer than a lease', ofUpdate(`expires_at = now() + interval '1 hour'`), 'unprepared', 'started'],
    ['it is a preview beside another update', ofUpdate('exclusive = false, dry_run = true'), 'unprepared', 'started'],
    ['entries are in no checkpoint', journal('compaction_error', 'null'), 'unprepared', 'started'],
    ['entries could not be replayed', journal('compaction_error', `'unknown'`), 'fault'],
    ['entries were left out', journal('compacted_entries, compaction_warning', `1, 'left out'`), 'started'],
    ['a fault was accepted', journal('compaction_error, accepted_at', `'unknown', now()`), 'started'],
  ])('if %s', async (_, change, first, prepared = first) => {
    expect(await outcomes(change)).toEqual([first, prepared]);
  });

  test('if it is of another stack, if tags change, or if change limits need a journal', async () => {
    const both = (outcome: string) => [outcome, outcome];
    expect(await outcomes(null, { name: 'prod' })).toEqual(both('not-found'));
    expect(await outcomes(null, { tags: '{"a":"1"}' })).toEqual(both('new-tags'));
    expect(await outcomes(guarded(true), { withJournal: false })).toEqual(both('journal-needed'));
    expect(await outcomes(guarded(true))).toEqual(both('started'));
    expect(await outcomes(guarded(false), { withJournal: false })).toEqual(both('started'));
  });

  test('otherwise gives it a version, and a journal where it is offered', async () => {
    const begun = { outcome: 'started', stackVersion: 1 };
    expect(await given(null, held.ids, start)).toEqual({ ...begun, journalVersion: 1 });
    const plain = await given(null, held.ids, () => start({ tags: '{}', withJournal: false }));
    expect(plain).toEqual({ ...begun, journalVersion: 0 });
  });
});

/** The stack's id, that of its admin's token, and that of its organization. */
async function idsOf(stack: TestStack): Promise<string[]> {
  const [row] = await query<{ stack: string; token: string; organization: string }>(
    app,
    `select s.id as stack, t.id as token, o.id as organization
     from organizations o join projects p on p.organization_id = o.id join stacks s on s.project_id = p.id
       join memberships m on m.organization_id = o.id join api_tokens t on t.user_id = m.user_id
     where o.name = $1`,
    [stack.organization],
  );
  return Object.values(row as object) as string[];
}

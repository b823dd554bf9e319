import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { cancel, complete, expire } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

let app: TestApp;
let client: pg.Client;
beforeAll(async () => {
  app = await createTestApp();
  client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await prepare();
});
afterAll(async () => {
  await client.end();
  await app[Symbol.asyncDispose]();
});

const environment = { 'ci.system': 'GitHub', 'ci.build.id': '7' };

/** Creates an update, and starts it with `tags`. Returns its id and lease. */
async function begin(stack: TestStack, tags: object | null) {
  const { auth } = stack;
  const body = { metadata: { message: 'Add "a" \\ b', environment }, config: { a: 1 } };
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
  expect(names).toEqual(['updates.create', 'updates.startAtOnce']);
});

test('an update that began in one statement each is recorded as one that began in steps', async () => {
  const stack = await createStack(app);
  const { auth } = stack;
  await ok(app.call('POST', `${stack.path}/import`, { auth, body: deployment(2) }));
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth, body: { a: '1' } }));
  const atOnce = await begin(stack, { a: '1' });
  const ofFirst = await recordOf(stack, atOnce.id);
  expect(ofFirst).toMatchObject({
    events: [
      { action: 'update.create', is_of_update: true, ci_run: '{"system":"GitHub","build.id":"7"}' },
      { action: 'update.start', is_of_update: true, details: { kind: 'update', dryRun: false } },
    ],
    updates: [{ status: 'running', holds: true, at_base: true, journals: 1, versions: 1, message: 'Add "a" \\ b' }],
  });
  await ok(complete(app, { ...atOnce, version: 1 }));
  // A rule and changed tags need steps.
  const scope = { project: 'proj', stack: 'dev' };
  const rule = { kind: 'wait-alert', settings: { seconds: 60 }, ...scope };
  await setRule(app, stack, rule);
  let inSteps: Awaited<ReturnType<typeof begin>> | undefined;
  const names = await sentStatements(async () => {
    inSteps = await begin(stack, { a: '2' });
  });
  expect(names).toEqual(expect.arrayContaining(['updates.insert', 'updates.start', 'stacks.setTags']));
  expect(names).not.toContain('updates.create');
  expect(await recordOf(stack, inSteps?.id as string)).toEqual(ofFirst);
  expect(Object.keys(inSteps?.started)).toEqual(Object.keys(atOnce.started));
  expect(inSteps?.started.version).toBe(atOnce.started.version + 1);
});

test('an update that has ended says how when it is started', async () => {
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

/** Changes that leave more to decide, as SQL with names for the stack, the token of its admin and its organization. */
type Change = readonly [name: string, statement: string];

const ofBoth: Change[] = [
  ['the token was revoked', 'update api_tokens set revoked_at = now() where id = :token'],
  [
    'the user was deactivated',
    'update users set deactivated_at = now() where id = (select user_id from api_tokens where id = :token)',
  ],
  ['the caller may only read', `update memberships set role = 'viewer' where organization_id = :organization`],
  [
    'a grant denies it',
    `insert into grants (organization_id, user_id, effect, permissions) select :organization, user_id, 'deny', 6 from api_tokens where id = :token`,
  ],
  ['the stack was deleted', 'update stacks set deleted_at = now() where id = :stack'],
  [
    'entries could not be replayed',
    `with u as (insert into updates (stack_id, kind, exclusive, status, expires_at) values (:stack, 'update', true, 'failed', now()) returning id)
     insert into journals (update_id, stack_id, entry_count, compaction_error) select id, :stack, 1, 'unknown' from u`,
  ],
];
const waiting = 'insert into update_queue_waiters (stack_id, token_id, kept_until) values (:stack, :token, now())';

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

/** A stack to create an update of, and one that has an update to start. */
let free: { readonly stack: TestStack; readonly ids: readonly string[] };
let held: { readonly stack: TestStack; readonly ids: readonly string[]; readonly updateId: string };
async function prepare(): Promise<void> {
  const [first, second] = [await createStack(app), await createStack(app)];
  free = { stack: first, ids: await idsOf(first) };
  const created = await ok(app.call('POST', `${second.path}/update`, { auth: second.auth, body: {} }));
  held = { stack: second, ids: await idsOf(second), updateId: created.json.updateID };
}

describe('nothing is created in one statement', () => {
  const nothing = { isCreated: false, waiting: 0 };
  const create = async ({ isDryRun = false, isExclusive = true, mayWait = true } = {}) => {
    const { ids, stack } = free;
    const { rows } = await client.query<{ id: string | null }>(
      `select create_update($1, $2, $3, 'update', $4, $5, $6, '', '{}', '{}', '{}', null, null, 60) as id`,
      [ids[0], ids[1], stack.organization, isDryRun, isExclusive, mayWait],
    );
    const found = await client.query(`select 1 from updates where stack_id = $1 and status = 'not started'`, [ids[0]]);
    return { isCreated: rows[0]?.id !== null, waiting: found.rowCount };
  };

  test.each<Change>([
    ...ofBoth,
    [
      'a rule applies',
      `insert into update_rules (organization_id, kind, settings) values (:organization, 'freeze', '{}')`,
    ],
    [
      'a rule applies to a tag of the stack',
      `update stacks set tags = '{"a":"1"}' where id = :stack;
       insert into update_rules (organization_id, kind, settings, tag_name, tag_value) values (:organization, 'freeze', '{}', 'a', '1')`,
    ],
    ['a call waits for the stack', waiting],
  ])('if %s', async (_, change) => {
    expect(await given(change, free.ids, create)).toEqual(nothing);
  });

  test('if another update holds the stack', async () => {
    const both = async () => [await create(), await create()];
    const one = { isCreated: true, waiting: 1 };
    expect(await given(null, free.ids, both)).toEqual([one, { ...nothing, waiting: 1 }]);
  });

  test('except where none of this is so, or does not count', async () => {
    const faulty = ofBoth.at(-1)?.[1] as string;
    const one = { isCreated: true, waiting: 1 };
    expect(await given(null, free.ids, create)).toEqual(one);
    expect(await given(waiting, free.ids, () => create({ mayWait: false }))).toEqual(one);
    expect(await given(faulty, free.ids, () => create({ isDryRun: true, isExclusive: false }))).toEqual(one);
  });
});

describe('nothing is started in one statement', () => {
  const nothing = { started: [], hasLease: false };
  const start = async ({ tags = null as string | null, withJournal = true, name = 'dev' } = {}) => {
    const { ids, stack, updateId } = held;
    const { rows: started } = await client.query(
      `select "stackVersion", "journalVersion" from start_update($1, $2, $3, $4, $5, $6, '\\x00', 600, 3600, $7)`,
      [updateId, ids[1], stack.organization, stack.project, name, tags, withJournal],
    );
    const found = await client.query(`select 1 from updates where id = $1 and lease_hash = '\\x00'`, [updateId]);
    return { started, hasLease: found.rowCount === 1 };
  };
  const ofUpdate = (set: string) =>
    `update updates set ${set} where id = (select active_update_id from stacks where id = :stack)`;

  test.each<Change>([
    ...ofBoth,
    ['it has ended', ofUpdate(`status = 'cancelled'`)],
    ['it runs already', ofUpdate(`status = 'running'`)],
    ['its time is over', ofUpdate('expires_at = now()')],
    ['it would wait longer than a lease', ofUpdate(`expires_at = now() + interval '1 hour'`)],
    ['its permission has ended', ofUpdate(`end_reason = 'grant-ended'`)],
    ['it is a preview beside another update', ofUpdate('exclusive = false, dry_run = true')],
    [
      'entries are in no checkpoint',
      `with u as (insert into updates (stack_id, kind, exclusive, status, expires_at) values (:stack, 'update', true, 'failed', now()) returning id)
       insert into journals (update_id, stack_id, entry_count) select id, :stack, 1 from u`,
    ],
  ])('if %s', async (_, change) => {
    expect(await given(change, held.ids, start)).toEqual(nothing);
  });

  test('if it is of another stack, if tags change, or if a guard needs a journal', async () => {
    expect(await given(null, held.ids, () => start({ name: 'prod' }))).toEqual(nothing);
    expect(await given(null, held.ids, () => start({ tags: '{"a":"1"}' }))).toEqual(nothing);
    const guarded = ofUpdate('is_limited = true');
    expect(await given(guarded, held.ids, () => start({ withJournal: false }))).toEqual(nothing);
  });

  test('except where none of this is so, or does not count', async () => {
    const journaled = { started: [{ stackVersion: 1, journalVersion: 1 }], hasLease: true };
    expect(await given(null, held.ids, start)).toEqual(journaled);
    expect(await given(ofUpdate('is_limited = true'), held.ids, start)).toEqual(journaled);
    const plain = { started: [{ stackVersion: 1, journalVersion: 0 }], hasLease: true };
    expect(await given(null, held.ids, () => start({ tags: '{}', withJournal: false }))).toEqual(plain);
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

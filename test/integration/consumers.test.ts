import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { createDueIndexRepository } from '../../src/shared/search/due-index-repository.ts';
import { runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { blockedBy, during } from '../support/held-transactions.ts';
import { create, environment, run } from '../support/output-events.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { indexAll, indexedRows, stackId, stateOf } from '../support/state-index.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

const app = testApp();

/** A stack of the same organization whose state has a reference to `stack`. */
async function consumerOf(stack: TestStack, name: string): Promise<TestStack> {
  await ok(app.call('POST', `/api/stacks/${stack.organization}/apps`, { auth: stack.auth, body: { stackName: name } }));
  const consumer = { ...stack, project: 'apps', stack: name, path: `/api/stacks/${stack.organization}/apps/${name}` };
  await write(consumer, [reference(`${stack.organization}/${stack.project}/${stack.stack}`)]);
  return consumer;
}

const reference = (read: string) => ({ name: 'network', type: 'pulumi:pulumi:StackReference', inputs: { name: read } });

async function write(stack: TestStack, resources: Parameters<typeof stateOf>[1], isIndexed = true): Promise<void> {
  const update = await startUpdate(app, stack);
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: stateOf(stack, resources) }));
  await ok(complete(app, update));
  if (isIndexed) await indexAll(app);
}

const remove = ({ auth, path }: TestStack) => app.call('DELETE', `${path}?force=false`, { auth });
const destroy = ({ auth, path }: TestStack) => app.call('POST', `${path}/destroy`, { auth, body: {} });
const cancelled = ({ auth, path }: TestStack, { json }: TestResponse) =>
  app.call('POST', `${path}/update/${json.updateID}/cancel`, { auth });
const rename = ({ auth, path }: TestStack) => app.call('POST', `${path}/rename`, { auth, body: { newName: 'moved' } });

test('a rule refuses to remove outputs that other stacks read, and names them', async () => {
  const stack = await createStack(app);
  expect((await indexedRows(app, stack)).length).toBe(0);
  const consumer = await consumerOf(stack, 'shop');
  await consumerOf(stack, 'stock');
  await setRule(app, stack, {
    kind: 'consumers',
    project: 'proj',
    settings: { mode: 'refuse' },
    note: 'Ask the platform team.',
  });
  for (const refused of [await remove(stack), await destroy(stack), await rename(stack)]) {
    expect(refused.status).toBe(409);
    expect(refused.json.message).toContain(
      `is read by ${stack.organization}/apps/shop, ${stack.organization}/apps/stock: `,
    );
    expect(refused.json.message).toContain('Ask the platform team.');
  }
  // Who does not read it any more does not count, nor who is deleted.
  await write(consumer, [{ name: 'other' }]);
  await ok(app.call('DELETE', `/api/stacks/${stack.organization}/apps/stock?force=true`, { auth: stack.auth }));
  expect((await remove(stack)).status).toBe(204);
});

test('a rule refuses a rename that another session held up while a consumer appeared', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const other = new pg.Client({ connectionString: app.database.ownerUrl });
  await other.connect();
  try {
    await other.query('begin');
    await other.query('select 1 from stacks where id = $1 for update', [await stackId(app, stack)]);
    const renaming = rename(stack);
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => (await query(app, waiting, [])).length > 0, 'the rename waits');
    await consumerOf(stack, 'shop');
    await other.query('rollback');
    const { json, status } = await renaming;
    expect([status, json.message]).toEqual([409, expect.stringContaining('is now read by another stack')]);
  } finally {
    await other.end();
  }
});

test('while a state is not indexed, a rule refuses, or warns, and the search says so', async () => {
  const stack = await createStack(app);
  await indexAll(app);
  const { auth, organization } = stack;
  await ok(app.call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: 'shop' } }));
  const consumer = { ...stack, project: 'apps', stack: 'shop', path: `/api/stacks/${organization}/apps/shop` };
  await write(consumer, [reference(`${organization}/proj/dev`)], false);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  for (const refused of await Promise.all([remove(stack), destroy(stack), rename(stack)])) {
    expect(refused.status).toBe(409);
    expect(refused.json.message).toContain(
      `may be read by ${organization}/apps/shop, of which the newest state is not indexed yet`,
    );
  }
  const search = async () =>
    (await ok(app.call('GET', `/api/orgs/${organization}/search/resources?query=`, { auth }))).json.behind;
  expect(await search()).toEqual({ stacks: 1, oldestSeconds: expect.any(Number) });
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  const warned = (await ok(destroy(stack))).json;
  expect(warned.messages[0].message).toContain(`may be read by ${organization}/apps/shop`);
  await ok(app.call('POST', `${stack.path}/update/${warned.updateID}/cancel`, { auth }));
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const waiting = remove(stack);
  await indexAll(app);
  expect((await waiting).json.message).toContain(`is read by ${organization}/apps/shop: `);
  expect(await search()).toBeNull();
});

test('a rule counts that is made while the policies of the new update are being read', async () => {
  const stack = await createStack(app);
  await indexAll(app);
  const { auth, organization } = stack;
  await ok(app.call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: 'shop' } }));
  const consumer = { ...stack, project: 'apps', stack: 'shop', path: `/api/stacks/${organization}/apps/shop` };
  await write(consumer, [reference(`${organization}/proj/dev`)], false);
  await during(app, ['lock table policy_groups in access exclusive mode'], async (session, end) => {
    const destroyed = destroy(stack);
    await blockedBy(app, session);
    const since = performance.now();
    await until(() => performance.now() - since > 1_500, 'its checks are no longer fresh');
    await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
    await end('rollback');
    const { json, status } = await destroyed;
    expect([status, json.message]).toEqual([409, expect.stringContaining(`may be read by ${organization}/apps/shop`)]);
  });
});

test('a rule says that a state cannot be indexed', async () => {
  const stack = await createStack(app);
  const consumer = await consumerOf(stack, 'shop');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await write(consumer, [{ name: 'other' }]);
  await query(
    app,
    `insert into state_index_due (stack_id, failures, claimed_until) values ($1, 2, now() + interval '1 hour')`,
    [await stackId(app, consumer)],
  );
  const refused = await remove(stack);
  expect(refused.status).toBe(409);
  expect(refused.json.message).toContain('apps/shop, of which the newest state cannot be indexed (see the log of');
  await query(app, 'delete from state_index_due', []);
});

test('while an index is rebuilt, and if that fails, the references of the stack count, and the search says that it is behind', async () => {
  const stack = await createStack(app);
  const consumer = await consumerOf(stack, 'shop');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await query(
    app,
    `update checkpoints set inline_bytes = '\\x00', damaged_at = now(), checked_at = now() where stack_id = $1`,
    [await stackId(app, consumer)],
  );
  for (const allVersions of [false, true])
    await expect(app.context.indexer.rebuild(await stackId(app, consumer), { allVersions })).rejects.toThrow('damaged');
  const refused = await remove(stack);
  expect(refused.status).toBe(409);
  expect(refused.json.message).toContain('apps/shop');
  const { auth, organization } = stack;
  const search = await ok(app.call('GET', `/api/orgs/${organization}/search/resources?query=`, { auth }));
  expect(search.json.behind).toMatchObject({ stacks: 1 });
  await query(app, 'delete from state_index_due', []);
});

test('a rebuilt index is due no more, and wrong rows of it are right', async () => {
  const stack = await createStack(app);
  const consumer = await consumerOf(stack, 'shop');
  const id = await stackId(app, consumer);
  const rebuilds = [
    () => app.context.indexer.rebuild(id, { allVersions: false }),
    async () => {
      await runInProcess(app, 'admin', 'index', 'rebuild', '--all');
      await indexAll(app);
    },
  ];
  for (const rebuild of rebuilds) {
    await query(app, 'delete from state_index_due', []);
    await query(
      app,
      `insert into state_index_due (stack_id, failures, claimed_until) values ($1, 2, now() + interval '1 hour')`,
      [id],
    );
    await query(app, `update stack_resources set reads = null where stack_id = $1`, [id]);
    await query(app, `update state_index_due set claimed_until = null`, []);
    await rebuild();
    expect(
      await query(app, `select reads from stack_resources where stack_id = $1 and reads is not null`, [id]),
    ).toEqual([{ reads: `${stack.organization}/proj/dev` }]);
    expect(await query(app, 'select 1 from state_index_due where stack_id = $1', [id])).toEqual([]);
  }
});

test('while all indexes are rebuilt, a rule decides by what they show of the newest states', async () => {
  const stack = await createStack(app);
  const consumer = await consumerOf(stack, 'shop');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await runInProcess(app, 'admin', 'index', 'rebuild', '--all');
  expect((await remove(stack)).json.message).toContain(`is read by ${stack.organization}/apps/shop: `);
  await write(consumer, [{ name: 'other' }]);
  await runInProcess(app, 'admin', 'index', 'rebuild', '--all');
  expect((await remove(stack)).status).toBe(204);
  await query(app, 'delete from state_index_due', []);
});

test('a rule warns; without one, nothing is said', async () => {
  const stack = await createStack(app);
  await consumerOf(stack, 'shop');
  const cancel = async (updateId: string) =>
    ok(app.call('POST', `${stack.path}/update/${updateId}/cancel`, { auth: stack.auth }));
  const quiet = (await ok(destroy(stack))).json;
  expect(quiet.messages).toEqual([]);
  await cancel(quiet.updateID);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  const said = `Stack ${stack.organization}/proj/dev is read by ${stack.organization}/apps/shop: its outputs`;
  const warned = (await ok(destroy(stack))).json;
  expect(warned.messages[0].message).toContain(said);
  await cancel(warned.updateID);
  expect((await ok(remove(stack))).headers['x-pulumi-warning']).toContain(said);
});

test('stacks of other organizations refuse nothing: they are counted in warnings, and not named', async () => {
  const stack = await createStack(app);
  const elsewhere = await createStack(app);
  const others = { ...elsewhere, path: elsewhere.path.replace(/dev$/, 'other'), stack: 'other' };
  await ok(app.call('POST', others.path.replace(/.other$/, ''), { auth: others.auth, body: { stackName: 'other' } }));
  for (const stranger of [elsewhere, others]) await write(stranger, [reference(`${stack.organization}/proj/dev`)]);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await run(app, stack, {}, true);
  const said = /is read by 2 stacks/;
  for (const call of [() => create(app, stack, false), () => destroy(stack)]) {
    const { json, text } = await ok(call());
    expect(json.messages).toEqual([{ severity: 'info', message: expect.stringMatching(said) }]);
    expect(text).not.toContain(elsewhere.organization);
    await ok(app.call('POST', `${stack.path}/update/${json.updateID}/cancel`, { auth: stack.auth }));
  }
  await ok(rename(stack));
  const renamed = { ...stack, path: stack.path.replace(/dev$/, 'moved') };
  await write(elsewhere, [reference(`${stack.organization}/proj/moved`)]);
  // Its own stacks refuse, and are named, however many others there are.
  const consumer = await consumerOf({ ...stack, stack: 'moved' }, 'shop');
  expect((await remove(renamed)).json.message).toContain(`is read by ${stack.organization}/apps/shop: `);
  await write(consumer, []);
  const removed = await ok(remove(renamed));
  expect(removed.headers['x-pulumi-warning']).toMatch(/is read by 1 stack/);
  expect(removed.headers['x-pulumi-warning']).not.toContain(elsewhere.organization);
});

test('consumers that the caller may not read are counted, not named', async () => {
  const stack = await createStack(app);
  await consumerOf(stack, 'hidden');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const admin = await person(app, stack.organization, 'admin');
  await grant(app, admin.organizationId, { userId: admin.userId }, 'deny', ['read'], { stacks: 'apps/*' });
  const refused = await remove({ ...stack, auth: admin.auth });
  expect(refused.json.message).toContain('is read by 1 stack: ');
  expect(refused.text).not.toContain('hidden');
});

/** Begins to remove the stack, and returns once that waits for the index. */
async function beginRemoval(stack: TestStack): Promise<{ readonly removal: Promise<TestResponse> }> {
  const [begun] = await query<{ at: string }>(app, 'select clock_timestamp()::text as at', []);
  const removal = remove(stack);
  const listed = `select 1 from pg_stat_activity where datname = current_database() and query ~ 'stateIndex[.](setAwaited|listUnindexed) '
    and query_start > $1::timestamptz and pid <> pg_backend_pid()`;
  await until(async () => (await query(app, listed, [begun?.at])).length > 0, 'the deletion waits for the index');
  return { removal };
}

test('of many states that are not indexed, none that was saved before the call is overlooked', async () => {
  const stack = await createStack(app);
  await query(app, 'delete from state_index_due', []);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await query(
    app,
    `with added as (
       insert into stacks (project_id, name) select s.project_id, 'other' || n from stacks s, generate_series(1, 201) n where s.id = $1
       returning id, name)
     insert into state_index_due (stack_id, noted_at)
     select id, now() - interval '1 second' * (500 - substr(name, 6)::integer) from added`,
    [await stackId(app, stack)],
  );
  const { removal } = await beginRemoval(stack);
  await query(app, `delete from state_index_due d using stacks s where s.id = d.stack_id and s.name <> 'other201'`, []);
  const refused = await removal;
  expect(refused.status).toBe(409);
  expect(refused.json.message).toContain(`may be read by ${stack.organization}/proj/other201,`);
  await query(app, 'delete from state_index_due', []);
});

test('a state that was saved while a worker indexed the one before is not overlooked', async () => {
  const stack = await createStack(app);
  await query(app, 'delete from state_index_due', []);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  const claim = randomUUID();
  const [shop] = await query<{ id: string }>(
    app,
    `with added as (insert into stacks (project_id, name) select project_id, 'shop' from stacks where id = $1 returning id)
     insert into state_index_due (stack_id, claim, claimed_until, is_noted_again)
     select id, $2, now() + interval '1 hour', true from added returning stack_id as id`,
    [await stackId(app, stack), claim],
  );
  const { removal } = await beginRemoval(stack);
  await createDueIndexRepository(app.context.db).release(shop?.id as string, claim);
  const refused = await removal;
  expect(refused.status).toBe(409);
  expect(refused.json.message).toContain(`may be read by ${stack.organization}/proj/shop,`);
  await query(app, 'delete from state_index_due', []);
});

test('a state for which a call waits is indexed before earlier ones of other organizations', async () => {
  const [stack, other] = [await createStack(app), await createStack(app)];
  await query(app, 'delete from state_index_due', []);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await query(
    app,
    `with added as (
       insert into stacks (project_id, name) select project_id, 'shop' from stacks where id = any ($1) returning id, project_id)
     insert into state_index_due (stack_id, noted_at)
     select a.id, now() - interval '1 hour' * (1 + (a.project_id = s.project_id)::integer) from added a, stacks s where s.id = $2`,
    [[await stackId(app, stack), await stackId(app, other)], await stackId(app, other)],
  );
  const { removal } = await beginRemoval(stack);
  const rows = createDueIndexRepository(app.context.db);
  const claim = randomUUID();
  const options = { claim, claimSeconds: 60, delaySeconds: 300, limit: 1, withBacklog: false };
  await until(
    async () => (await query(app, 'select 1 from state_index_due where is_awaited')).length > 0,
    'the deletion asks for the index',
  );
  const [first] = await rows.claim(options);
  await rows.release(first?.stackId as string, claim);
  await ok(removal);
  expect(await query(app, 'select 1 from state_index_due')).toHaveLength(1);
  await query(app, 'delete from state_index_due', []);
});

test('pages about CI do not name consumers to users who may not read them', async () => {
  const stack = await createStack(app);
  const { organization } = stack;
  await consumerOf(stack, 'hidden');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' }, note: 'Ask first.' });
  expect((await destroy(stack)).json.message).toContain('apps/hidden');
  await run(app, stack, {}, true);
  expect((await create(app, stack, false)).json.message).toContain('apps/hidden');
  const viewer = await person(app, organization, 'viewer');
  await grant(app, viewer.organizationId, { userId: viewer.userId }, 'deny', ['read'], { stacks: 'apps/*' });
  const { data } = await ask(app, viewer.token, 'ci.refusals', { organization, days: 7 });
  expect(data.items.map(({ message, reason }: { message: string; reason: string }) => [reason, message])).toEqual([
    [
      'has-consumers',
      expect.stringMatching(/removes the outputs "name", "url" of stack .*read by 1 stack\. .*Ask first/),
    ],
    ['has-consumers', expect.stringMatching(/is read by 1 stack: its outputs will be gone\. .*Ask first/)],
  ]);
});

test('an update whose preview removes outputs that other stacks read is refused, or its user is warned', async () => {
  const stack = await createStack(app);
  const cancel = async ({ json }: TestResponse) =>
    ok(app.call('POST', `${stack.path}/update/${json.updateID}/cancel`, { auth: stack.auth }));
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' }, note: 'Ask first.' });
  await run(app, stack, { url: 1 }, true);
  // Nobody reads them.
  await cancel(await ok(create(app, stack, false)));
  await consumerOf(stack, 'shop');
  const refused = await create(app, stack, false);
  expect(refused.status).toBe(409);
  expect(refused.json.message).toMatch(
    /removes the output "name" of stack .*proj\/dev, which is read by \S+apps\/shop\..*Ask first/,
  );
  expect(refused.text).not.toContain('hidden');
  // What another commit does is not known, nor what an older preview said.
  await cancel(await ok(create(app, stack, false, { 'git.head': 'cd34'.repeat(10) })));
  await run(app, stack, { url: 1, name: 2 }, true);
  await cancel(await ok(create(app, stack, false)));
  // Without a commit, the newest preview of the same version by the same user counts.
  await run(app, stack, {}, true, {} as typeof environment);
  expect((await create(app, stack, false, {})).json.message).toContain('the outputs "name", "url" of stack');
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  const warned = await run(app, stack, {}, false, {} as typeof environment);
  expect(warned.json.messages).toEqual([
    { severity: 'info', message: expect.stringContaining('the outputs "name", "url" of stack') },
  ]);
  const notified = await query<{ text: string }>(
    app,
    `select u.dry_run || ' ' || l.names as text from output_losses l join updates u on u.id = l.update_id where u.stack_id = $1 order by u.number`,
    [await stackId(app, stack)],
  );
  expect(notified.map(({ text }) => text)).toEqual([
    'true ["name"]',
    'true []',
    'true ["name","url"]',
    'false ["name","url"]',
  ]);
});

test('a preview from before the rule, or from before the stack had its tag, does not let its update pass', async () => {
  const stack = await createStack(app);
  await consumerOf(stack, 'shop');
  await run(app, stack, { url: 1 }, true);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' }, tag: { name: 'tier', value: 'base' } });
  await ok(cancelled(stack, await ok(create(app, stack, false))));
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { tier: 'base' } }));
  expect((await create(app, stack, false)).json.message).toContain('it is older than the rule. Run a new preview');
  await run(app, stack, { url: 1, name: 'n' }, true);
  await ok(cancelled(stack, await ok(create(app, stack, false))));
  await run(app, stack, { url: 1 }, true);
  expect((await create(app, stack, false)).json.message).toContain('removes the output "name"');
});

test('a preview that goes on while its stack is renamed tells what it removes', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await run(app, stack, { url: 1 }, true, environment, () => ok(rename(stack)));
  const renamed = { ...stack, stack: 'moved', path: stack.path.replace(/[^/]+$/, 'moved') };
  await consumerOf(renamed, 'shop');
  expect((await create(app, renamed, false)).json.message).toContain('removes the output "name"');
});

/** An event of rows that cannot be read, and one that is too large to be looked at. */
const unreadable = {
  'is damaged': `update engine_events set event = replace(event, '"new":', 'new:') where update_id = $1`,
  'is too large': `update engine_events set event = event || repeat(' ', 9000000) where update_id = $1 and sequence = 0`,
};

test.each(Object.entries(unreadable))(
  'a preview whose event about outputs %s does not let its update pass, and says so',
  async (_, damage) => {
    const stack = await createStack(app);
    await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' }, note: 'Ask first.' });
    const before = (await app.context.metrics.outputChecksFailed.get()).values[0]?.value ?? 0;
    const preview = await run(app, stack, { url: 1 }, true, environment, (id) => query(app, damage, [id]));
    expect((await app.context.metrics.outputChecksFailed.get()).values[0]?.value).toBe(before + 1);
    // Nobody reads its outputs.
    const passed = await ok(create(app, stack, false));
    await ok(app.call('POST', `${stack.path}/update/${passed.json.updateID}/cancel`, { auth: stack.auth }));
    await consumerOf(stack, 'shop');
    const refused = await create(app, stack, false);
    expect(refused.status).toBe(409);
    expect(refused.json.message).toMatch(
      /^It is not known whether the preview .* removes outputs of stack .*proj\/dev, which is read by \S+apps\/shop: .*Run a new preview: .*Ask first/,
    );
    const { data } = await ask(app, stack.auth.replace('token ', ''), 'updates.statistics', {
      ...{ organization: stack.organization, project: stack.project, stack: stack.stack },
      updateId: preview.json.updateID,
    });
    expect(data.removedOutputs).toEqual({
      names: [],
      isUnknown: true,
      consumers: expect.stringMatching(/^is read by \S+apps\/shop$/),
    });
    // A new preview that keeps them.
    await run(app, stack, { url: 1, name: 'n' }, true);
    await ok(create(app, stack, false));
  },
);

test('outputs that are gone already do not count, whatever a preview from before said', async () => {
  const stack = await createStack(app);
  await consumerOf(stack, 'shop');
  const setMode = (mode: string) => setRule(app, stack, { kind: 'consumers', settings: { mode } });
  await setMode('refuse');
  await run(app, stack, {}, true);
  expect((await create(app, stack, false)).status).toBe(409);
  await setMode('warn');
  await run(app, stack, { url: 1 }, false);
  await setMode('refuse');
  // The same commit again, without a preview: it still removes the other one.
  expect((await create(app, stack, false)).json.message).toContain('removes the output "url" of stack');
  await setMode('warn');
  await run(app, stack, { name: 1 }, false);
  await setMode('refuse');
  await ok(create(app, stack, false));
});

test('operators rebuild the index of a stack, or note all stacks for workers', async () => {
  const stack = await createStack(app);
  await write(stack, [{ name: 'a' }]);
  await query(app, 'delete from stack_resources', []);
  const name = `${stack.organization}/proj/dev`;
  const done = await runInProcess(app, 'admin', 'index', 'rebuild', name, '--versions');
  expect(JSON.stringify(done)).toContain('1 versions');
  expect(await indexedRows(app, stack)).toHaveLength(1);
  await runInProcess(app, 'admin', 'index', 'rebuild', '--all');
  const [row] = await query<{ due: number }>(app, 'select count(*)::int as due from state_index_due', []);
  expect(row?.due).toBeGreaterThan(0);
});

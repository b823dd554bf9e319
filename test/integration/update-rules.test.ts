import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createUpdateRuleRepository } from '../../src/shared/updates/rules/update-rule-repository.ts';
import { runAdminCommand } from '../support/admin.ts';
import { listEvents } from '../support/audit.ts';
import { holdInserts, query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { noteStatements } from '../support/statement-count.ts';
import { testApp } from '../support/test-app.ts';
import { removeRule, rulesPath, setRule } from '../support/update-rules.ts';

const app = testApp();

const list = async (stack: TestStack) =>
  (await ok(app.call('GET', rulesPath(stack), { auth: stack.auth }))).json.rules as { id: string; kind: string }[];

async function rulesOf(stack: TestStack) {
  const [row] = await query<{ id: string }>(
    app,
    `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 and p.name = $2 and s.name = $3`,
    [stack.organization, stack.project, stack.stack],
  );
  return createUpdateRuleRepository(app.context.db).listOfStack(row?.id as string);
}

const wait = (seconds: number, scope: object = {}) => ({ kind: 'lock-wait', settings: { seconds }, ...scope });

describe('rules over HTTP', () => {
  test('are set, listed, read, replaced and deleted', async () => {
    const stack = await createStack(app);
    const id = await setRule(app, stack, { ...wait(60, { project: 'proj', stack: 'dev' }), note: 'Patience' });
    const path = `${rulesPath(stack)}/${id}`;
    const { json } = await ok(app.call('GET', path, { auth: stack.auth }));
    expect(json).toEqual({
      id,
      kind: 'lock-wait',
      project: 'proj',
      stack: 'dev',
      settings: { seconds: 60 },
      note: 'Patience',
      setAt: expect.stringMatching(/^20.*Z$/),
      setBy: expect.stringMatching(/^admin-/),
    });
    expect(await setRule(app, stack, wait(90, { project: 'proj', stack: 'dev' }))).toBe(id);
    const other = await setRule(app, stack, wait(30, { tag: { name: 'env', value: 'prod' } }));
    expect((await list(stack)).map((each) => each.id).sort()).toEqual([id, other].sort());
    expect((await app.call('GET', path, { auth: stack.auth })).json.settings).toEqual({ seconds: 90 });
    await removeRule(app, stack, id);
    expect((await app.call('GET', path, { auth: stack.auth })).status).toBe(404);
    expect((await app.call('DELETE', path, { auth: stack.auth })).status).toBe(404);
    const events = (await listEvents(app, stack.organization)).filter(({ action }) => action.startsWith('update-rule'));
    expect(events.map(({ action, object }) => [action, object])).toEqual([
      ['update-rule.set', 'stack proj/dev'],
      ['update-rule.set', 'stack proj/dev'],
      ['update-rule.set', 'stacks with the tag env=prod'],
      ['update-rule.remove', 'stack proj/dev'],
    ]);
    expect(events[3]?.details).toMatchObject({ id, kind: 'lock-wait', settings: { seconds: 90 } });
  });

  test('that are added to others are not added twice by a repeated call', async () => {
    const stack = await createStack(app);
    const freeze = { kind: 'freeze', settings: { until: '2099-01-01T00:00:00Z', mode: 'wait' }, note: 'holidays' };
    const id = await setRule(app, stack, freeze);
    expect(await setRule(app, stack, { ...freeze, settings: { mode: 'wait', until: '2099-01-01T00:00:00Z' } })).toBe(
      id,
    );
    for (const other of [{ note: 'audit' }, { project: 'proj' }, { settings: {} }])
      expect(await setRule(app, stack, { ...freeze, ...other })).not.toBe(id);
    expect(await list(stack)).toHaveLength(4);
    const events = (await listEvents(app, stack.organization)).filter(({ action }) => action === 'update-rule.set');
    expect(events).toHaveLength(4);
  });

  test('that are added to others are added by each user, and again after a minute', async () => {
    const stack = await createStack(app);
    const freeze = { kind: 'freeze', settings: { until: '2099-01-01T00:00:00Z' } };
    const id = await setRule(app, stack, freeze);
    const { auth } = await person(app, stack.organization, 'admin');
    const other = await setRule(app, { ...stack, auth }, freeze);
    expect(other).not.toBe(id);
    await query(app, `update update_rules set set_at = set_at - interval '61 seconds' where id = $1`, [id]);
    expect(await setRule(app, stack, freeze)).not.toBe(id);
    await removeRule(app, stack, id);
    expect(await list(stack)).toHaveLength(2);
  });

  test('must be valid, and there is a limit', async () => {
    const stack = await createStack(app);
    const post = (body: object) => app.call('POST', rulesPath(stack), { auth: stack.auth, body });
    expect((await post({ kind: 'other', settings: {} })).status).toBe(400);
    expect((await post(wait(-1))).status).toBe(400);
    expect((await post(wait(1, { stack: 'dev' }))).status).toBe(400);
    await query(
      app,
      `insert into update_rules (organization_id, kind, slot, settings)
       select id, 'freeze', n, '{"until":"2020-01-01T00:00:00Z"}' from organizations, generate_series(1, 500) n where name = $1`,
      [stack.organization],
    );
    const refused = await post(wait(1));
    expect(refused.status).toBe(400);
    expect(refused.json.message).toMatch('at most 500 rules');
    expect(await list(stack)).toHaveLength(500);
  });

  test('are no more than are read in a moment', async () => {
    const stack = await createStack(app);
    const windows = Array.from({ length: 20 }, (_, minute) => ({
      cron: `${minute} 3 * * 1`,
      timeZone: 'UTC',
      minutes: 5,
    }));
    const full = { kind: 'freeze', settings: { windows } };
    const notes = Array.from({ length: 5 }, (_, at) => `${at}`);
    const ids = await Promise.all(notes.map((note) => setRule(app, stack, { ...full, note })));
    const post = (body: object) => app.call('POST', rulesPath(stack), { auth: stack.auth, body });
    const refused = await post({ kind: 'freeze', settings: { windows: windows.slice(0, 1) } });
    expect(refused).toMatchObject({ status: 400, json: { message: expect.stringMatching('at most 100 windows') } });
    const id = await setRule(app, stack, { kind: 'freeze', settings: {} });
    const path = `${rulesPath(stack)}/${id}`;
    expect(await app.call('PUT', path, { auth: stack.auth, body: full })).toMatchObject({ status: 400 });
    await ok(app.call('DELETE', `${rulesPath(stack)}/${ids[0]}`, { auth: stack.auth }));
    await ok(app.call('PUT', path, { auth: stack.auth, body: full }));

    const types = Array.from({ length: 100 }, (_, at) => `${at}:`.padEnd(200, '*'));
    const long = (project: string) => post({ kind: 'protected-types', project, settings: { types } });
    const answers = [];
    for (let at = 0; at < 13; at++) answers.push(await long(`p${at}`));
    expect(answers.slice(0, 12).every(({ status }) => status < 300)).toBe(true);
    expect(answers[12]).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching('at most 262144 bytes') },
    });
  });

  test('of another organization cannot be reached', async () => {
    const [one, other] = [await createStack(app), await createStack(app)];
    const id = await setRule(app, one, wait(60));
    const path = `${rulesPath(other)}/${id}`;
    expect((await app.call('GET', path, { auth: other.auth })).status).toBe(404);
    expect((await app.call('DELETE', path, { auth: other.auth })).status).toBe(404);
    expect((await rulesOf(other)).isEmpty).toBe(true);
  });
});

describe('the rules of a stack', () => {
  test('are the grants for its names and tags, the most specific first', async () => {
    const stack = await createStack(app);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { env: 'prod' } }));
    const tag = { name: 'env', value: 'prod' };
    await setRule(app, stack, wait(1));
    await setRule(app, stack, wait(2, { project: 'proj' }));
    await setRule(app, stack, wait(3, { tag }));
    await setRule(app, stack, wait(4, { project: 'proj', tag }));
    await setRule(app, stack, wait(5, { project: 'proj', stack: 'dev' }));
    for (const scope of [
      { project: 'other' },
      { project: 'proj', stack: 'other' },
      { tag: { name: 'env', value: 'dev' } },
      { tag: { name: 'other', value: '' } },
      { project: 'other', tag },
    ])
      await setRule(app, stack, wait(9, scope));
    const rules = await rulesOf(stack);
    expect(rules.all('lock-wait').map(({ settings }) => settings.seconds)).toEqual([5, 4, 3, 2, 1]);
    expect(Math.abs(rules.now.getTime() - Date.now())).toBeLessThan(600_000);
  });

  test('cost no statement of their own when an update is created', async () => {
    const stack = await createStack(app);
    const noted = noteStatements(app);
    const create = async (): Promise<string[]> => {
      const before = noted.begun.length;
      const { json } = await ok(app.call('POST', `${stack.path}/preview`, { auth: stack.auth, body: {} }));
      const statements = noted.begun.slice(before);
      await ok(app.call('POST', `${stack.path}/preview/${json.updateID}/cancel`, { auth: stack.auth }));
      return statements;
    };
    await create();
    const without = await create();
    await setRule(app, stack, wait(60));
    expect(without).toContain('updateRules.findStack');
    expect(await create()).toEqual(without);
  });

  test('do not apply through tags that a user without the permission manage changes', async () => {
    const stack = await createStack(app);
    const { auth } = await person(app, stack.organization, 'member');
    const setTags = (body: object) => app.call('PATCH', `${stack.path}/tags`, { auth, body });
    await ok(setTags({ env: 'prod', team: 'a' }));
    await setRule(app, stack, { kind: 'freeze', settings: {}, tag: { name: 'env', value: 'prod' } });
    await ok(setTags({ env: 'prod', team: 'b' }));
    const refused = await setTags({ env: 'dev', team: 'b' });
    expect(refused.status).toBe(403);
    expect(refused.json.message).toMatch('Tag "env" decides the rules of its updates');
    expect((await setTags({ team: 'b' })).status).toBe(403);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { env: 'dev' } }));
  });

  test('do not change between the creation of an update and its commit', async () => {
    const stack = await createStack(app);
    const order: string[] = [];
    await using gate = await holdInserts(app, 'updates');
    const created = app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }).then((answer) => {
      order.push('update');
      return answer;
    });
    await gate.reached(1);
    const frozen = setRule(app, stack, { kind: 'freeze', settings: {} }).then(() => order.push('freeze'));
    await gate.reached(2);
    await gate.release();
    expect((await created).status).toBe(200);
    await frozen;
    expect(order).toEqual(['update', 'freeze']);
    await ok(app.call('POST', `${stack.path}/update/${(await created).json.updateID}/cancel`, { auth: stack.auth }));
    expect((await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} })).status).toBe(409);
  });

  test('wait for a change of rules that has begun', async () => {
    const stack = await createStack(app);
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    await client.query('begin');
    await client.query('select lock_exclusive(id) from organizations where name = $1', [stack.organization]);
    await client.query(
      `insert into update_rules (organization_id, kind, settings) select id, 'freeze', '{}' from organizations where name = $1`,
      [stack.organization],
    );
    const created = app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
    await client.query('select pg_sleep(0.2)');
    await client.query('commit');
    await client.end();
    expect((await created).status).toBe(409);
  });
});

test('operators set, list and delete rules', async () => {
  const stack = await createStack(app);
  const run = (...words: string[]) => runAdminCommand(app, 'rule', ...words, '--organization', stack.organization);
  const set = await run('set', 'lock-wait', 'seconds=600', '--stack', 'proj/dev', '--note', 'Patience');
  expect(set).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Set rule \S{36}: lock-wait for stack proj\/dev\./),
  });
  const [rule] = await list(stack);
  const { stdout } = await run('list');
  expect(stdout).toMatch(new RegExp(`^${rule?.id}  lock-wait  stack proj/dev  {"seconds": 600}  Patience`));
  for (const words of [
    ['set', 'other', 'a=1'],
    ['set', 'lock-wait', 'seconds'],
    ['set', 'lock-wait', 'seconds=x'],
    ['set', 'lock-wait', 'seconds=1', '--stack', 'dev'],
    ['set', 'lock-wait', 'seconds=1', '--tag', 'env'],
    ['delete', 'none'],
  ])
    expect(await run(...words)).toMatchObject({ code: 1 });
  expect(await run('delete', rule?.id as string)).toMatchObject({ code: 0 });
  expect(await list(stack)).toEqual([]);
  const events = (await listEvents(app, stack.organization)).filter(({ action }) => action.startsWith('update-rule'));
  expect(events.map(({ action, object }) => [action, object])).toEqual([
    ['update-rule.set', 'proj/dev'],
    ['update-rule.remove', rule?.id],
  ]);
});

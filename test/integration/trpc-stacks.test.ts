import { beforeAll, describe, expect, test } from '@jest/globals';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

const app = testApp();
const secret = (ciphertext: string) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext,
});
let stack: TestStack;
let token: string;
const ref = () => ({ organization: stack.organization, project: stack.project, stack: stack.stack });
const get = async () => (await ask(app, token, 'stacks.get', ref())).data;

async function importOutputs(outputs: object): Promise<void> {
  const root = {
    urn: 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev',
    custom: false,
    type: 'pulumi:pulumi:Stack',
    outputs,
  };
  const deployment = { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources: [root] };
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: { version: 3, deployment } }));
}

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
});

describe('a stack', () => {
  test('that is new has neither updates nor outputs', async () => {
    expect(await get()).toEqual({
      ...ref(),
      version: 0,
      resourceCount: null,
      tags: {},
      lastUpdate: null,
      active: null,
      waiting: 0,
      drift: 'unknown',
      updatedAt: expect.stringMatching(/Z$/),
      createdAt: expect.stringMatching(/Z$/),
      permissions: ['read', 'preview', 'write', 'admin', 'decrypt', 'manage'],
      outputs: [],
      pendingCount: 0,
      git: null,
      hasApprovals: false,
      fault: null,
      frozen: null,
      config: [],
    });
  });

  test('is shown with its outputs, and with nothing of secret ones', async () => {
    await importOutputs({
      url: 'http://x"<script>',
      count: 3,
      nested: { list: [1, { deep: secret('c2VjcmV0') }] },
      password: secret('c2VjcmV0'),
      long: 'x'.repeat(50_000),
      __proto__x: null,
    });
    const { outputs, version } = await get();
    expect(version).toBe(1);
    expect(JSON.stringify(outputs)).not.toContain('c2VjcmV0');
    expect(outputs).toEqual([
      { name: 'url', value: 'http://x"<script>', isSecret: false, isCut: false },
      { name: 'count', value: '3', isSecret: false, isCut: false },
      { name: 'nested', value: null, isSecret: true, isCut: false },
      { name: 'password', value: null, isSecret: true, isCut: false },
      { name: 'long', value: 'x'.repeat(20_000), isSecret: false, isCut: true },
      { name: '__proto__x', value: 'null', isSecret: false, isCut: false },
    ]);
    await importOutputs({ url: 'changed' });
    expect((await get()).outputs).toMatchObject([{ name: 'url', value: 'changed' }]);
  });

  test('is shown with the settings, the run and the commit of its last update', async () => {
    const environment = {
      'git.head': 'a'.repeat(40),
      'git.headName': 'refs/heads/main',
      'git.author': '<b>me</b>',
      'vcs.owner': 'acme',
      'vcs.repo': 'web',
      'ci.system': 'CI',
      'ci.build.url': 'javascript:alert(1)',
      'pulumi.env.SECRET': 'hunter2',
      PASSWORD: 'hunter2',
    };
    const config = {
      'proj:plain': { string: 'value', secret: false },
      'proj:password': { string: 'AAAciphertext', secret: true },
      'proj:object': { string: '{"a":{"secure":"AAAciphertext"}}', secret: false, object: true },
    };
    const body = { config, metadata: { message: 'm', environment } };
    const created = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
    const id = created.json.updateID as string;
    const shown = await get();
    expect(shown).toMatchObject({
      active: { updateId: id, kind: 'update', ciUrl: null },
      git: { repo: 'acme/web', branch: 'main', commit: 'a'.repeat(40) },
      lastUpdate: { updateId: id, commit: 'a'.repeat(40), ciUrl: null, result: 'not started' },
      config: [
        { key: 'proj:object', value: null, isSecret: true },
        { key: 'proj:password', value: null, isSecret: true },
        { key: 'proj:plain', value: 'value', isSecret: false },
      ],
    });
    const update = await ask(app, token, 'updates.get', { ...ref(), updateId: id });
    expect(update.data).toMatchObject({ commit: 'a'.repeat(40), branch: 'main', config: shown.config });
    for (const text of [JSON.stringify(shown), JSON.stringify(update)])
      expect(text).not.toMatch(/hunter2|ciphertext|javascript/);
    await ok(app.call('POST', `${stack.path}/update/${id}/cancel`, { auth: stack.auth }));
  });

  test('is shown as frozen with the note', async () => {
    const rule = {
      kind: 'freeze',
      project: 'proj',
      stack: 'dev',
      settings: { until: '2099-01-01T00:00:00Z' },
      note: 'Sale',
    };
    const find = async () =>
      (await ask(app, token, 'stacks.list', { organization: stack.organization, status: 'frozen' })).data.items.length;
    expect(await find()).toBe(0);
    const id = await setRule(app, stack, rule);
    expect((await get()).frozen).toEqual({
      ...{ ruleId: id, scope: 'stack proj/dev', isOfStackAlone: true },
      ...{ note: 'Sale', until: '2099-01-01T00:00:00.000Z' },
    });
    expect(await find()).toBe(1);
    await removeRule(app, stack, id);
    await setRule(app, stack, { ...rule, settings: { until: '2020-01-01T00:00:00Z' } });
    expect((await get()).frozen).toBeNull();
    expect(await find()).toBe(0);
  });

  test('with drift is distinguished from one without, and from one that was never compared', async () => {
    const drifting = async () =>
      (await ask(app, token, 'stacks.list', { organization: stack.organization, status: 'drifted' })).data.items.length;
    const update = await startUpdate(app, stack, { kind: 'refresh' });
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'succeeded' } }));
    expect((await get()).drift).toBe('unknown');
    await query(app, `update drift_runs set state = 'done', is_detected = true where update_id = $1`, [update.id]);
    expect((await get()).drift).toBe('drifted');
    expect(await drifting()).toBe(1);
    const remedy = await startUpdate(app, stack);
    await ok(app.call('POST', `${remedy.path}/complete`, { auth: remedy.lease, body: { status: 'succeeded' } }));
    expect((await get()).drift).toBe('clean');
    expect(await drifting()).toBe(0);
  });
});

describe('tags', () => {
  test('are set and removed one by one, on record', async () => {
    for (const [name, value] of [
      ['zone', 'eu'],
      ['tier', 'gold'],
      ['zone', 'us'],
    ])
      expect(await command(app, token, 'stacks.setTag', { ...ref(), name, value })).toMatchObject({
        status: 200,
        error: null,
      });
    expect((await get()).tags).toEqual({ zone: 'us', tier: 'gold' });
    expect(await command(app, token, 'stacks.removeTag', { ...ref(), name: 'tier' })).toMatchObject({ status: 200 });
    expect(await command(app, token, 'stacks.removeTag', { ...ref(), name: 'missing' })).toMatchObject({ status: 200 });
    expect((await get()).tags).toEqual({ zone: 'us' });
    const events = (await listEvents(app, stack.organization)).filter(({ action }) => action === 'stack.tags');
    expect(events).toHaveLength(5);
    expect(events[0]).toMatchObject({ object: `${stack.organization}/proj/dev`, outcome: 'done', sign_in: 'token' });
  });

  test('must be valid ones', async () => {
    for (const [name, value] of [
      ['a b', 'x'],
      ['', 'x'],
      ['x'.repeat(41), 'x'],
      ['fine', 'x'.repeat(257)],
      ['supersede', 'nonsense'],
    ])
      expect(await command(app, token, 'stacks.setTag', { ...ref(), name, value })).toMatchObject({
        status: 400,
        error: { code: 'BAD_REQUEST' },
      });
    expect((await get()).tags).toEqual({ zone: 'us' });
  });
});

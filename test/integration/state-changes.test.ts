import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { DataKeys } from '../../src/shared/secrets/data-keys.ts';
import { listEvents } from '../support/audit.ts';
import { browserOf } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask, command, type ProcedureResult } from '../support/procedures.ts';
import { exportedNames, exportState } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId, stateOf, type TestResource } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { cancel, complete } from '../support/update-calls.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

const app = testApp();
let stack: TestStack;
let token: string;
beforeEach(async () => {
  stack = await createStack(app);
  token = stack.auth.replace('token ', '');
});

const ref = (of: TestStack = stack) => ({ organization: of.organization, project: of.project, stack: of.stack });
const read = async (procedure: string, input: object = {}, of = stack) => {
  const { data, error } = await ask(app, of.auth.replace('token ', ''), procedure, { ...ref(of), ...input });
  expect(error).toBeNull();
  return data;
};
const change = (procedure: string, input: object, by = token): Promise<ProcedureResult> =>
  command(app, by, procedure, { ...ref(), ...input });
const urnOf = (name: string) => `urn:pulumi:dev::proj::test:index:Bucket::${name}`;
const secretOf = (ciphertext: string) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext,
});

interface Run {
  readonly pending?: readonly object[];
  readonly environment?: object;
  readonly isLost?: boolean;
}

/** An update that writes these resources. */
async function up(resources: readonly TestResource[], run: Run = {}, of = stack): Promise<void> {
  const { environment = {}, isLost = false, pending = [] } = run;
  const body = { options: {}, metadata: { message: 'm', environment } };
  const { json } = await ok(app.call('POST', `${of.path}/update`, { auth: of.auth, body }));
  const path = `${of.path}/update/${json.updateID}`;
  const { json: started } = await ok(app.call('POST', path, { auth: of.auth, body: {} }));
  const lease = `update-token ${started.token}`;
  const state = stateOf(of, resources);
  const deployment = pending.length === 0 ? state.deployment : { ...state.deployment, pending_operations: pending };
  await ok(app.call('PATCH', `${path}/checkpoint`, { auth: lease, body: { ...state, deployment } }));
  if (isLost) await ok(cancel(app, of, { path }));
  else await ok(complete(app, { id: json.updateID, path, lease, version: started.version }));
}

const operation = (type: string, name: string, more: object = {}) => ({
  resource: { urn: urnOf(name), custom: true, type: 'test:index:Bucket', inputs: { size: 1.0 }, ...more },
  type,
});

const eventsOf = async (action: string) =>
  (await listEvents(app, stack.organization)).filter((event) => event.action === action);

/** What a refused change must leave as it is. */
const recorded = async () => ({
  state: (await exportState(app, stack)).text,
  updates: await query(app, 'select id from updates where stack_id = $1 order by id', [await stackId(app, stack)]),
});

describe('a version is restored', () => {
  beforeEach(async () => {
    await up([{ name: 'a' }]);
    await up([{ name: 'a' }, { name: 'b' }]);
  });

  test('as a new one, with the name of its author', async () => {
    expect((await change('versions.restore', { version: 1, headVersion: 2 })).data).toEqual({ version: 3 });
    expect((await exportState(app, stack)).text).toBe((await exportState(app, stack, 1)).text);
    expect((await read('versions.list')).items[0]).toMatchObject({
      ...{ version: 3, kind: 'import', message: 'Restored version 1', resourceCount: 1 },
      by: expect.any(String),
    });
    const [event] = await eventsOf('stack.restore');
    expect(event).toMatchObject({ details: { version: 1, newVersion: 3 } });
    expect((await exportedNames(app, stack, 2)).length).toBe(2);
  });

  test('under the names that the stack has now', async () => {
    const renamed = { ...stack, stack: 'live', path: stack.path.replace(/dev$/, 'live') };
    await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'live' } }));
    stack = renamed;
    expect((await change('versions.restore', { version: 1, headVersion: 3 })).data).toEqual({ version: 4 });
    const { text } = await exportState(app, stack);
    expect(text).toContain('urn:pulumi:live::proj::test:index:Bucket::a');
    expect(text).not.toContain('urn:pulumi:dev::');
  });

  test('once, if two people see the same newest version', async () => {
    const both = await Promise.all([1, 2].map((version) => change('versions.restore', { version, headVersion: 2 })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await read('versions.list')).items).toHaveLength(3);
  });

  test('but not without the right to, over another head, during an update, or in a freeze', async () => {
    const before = await recorded();
    const viewer = await person(app, stack.organization, 'viewer');
    const denied = await person(app, stack.organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', ['write']);
    const stranger = await person(app, `${stack.organization}-x`, 'admin');
    const input = { version: 1, headVersion: 2 };
    expect(await change('versions.restore', input, viewer.token)).toMatchObject({ status: 403 });
    expect(await change('versions.restore', input, denied.token)).toMatchObject({ status: 403 });
    expect(await change('versions.restore', input, stranger.token)).toMatchObject({ status: 404 });
    expect(await change('versions.restore', { version: 9, headVersion: 2 })).toMatchObject({ status: 404 });
    expect(await change('versions.restore', { version: 1, headVersion: 1 })).toMatchObject({
      error: { kind: 'stack-changed' },
    });
    const freeze = await setRule(app, stack, { kind: 'freeze', settings: {}, note: 'no changes' });
    expect(await change('versions.restore', input)).toMatchObject({ error: { kind: 'frozen' } });
    await removeRule(app, stack, freeze);
    expect(await recorded()).toEqual(before);
    await startUpdate(app, stack);
    expect(await change('versions.restore', input)).toMatchObject({ error: { kind: 'stack-busy' } });
    expect((await exportState(app, stack)).text).toBe(before.state);
  });
});

describe('pending operations', () => {
  const pending = [
    ...[operation('creating', 'new'), operation('deleting', 'a', { id: 'i-1' }), operation('creating', 'x')],
    // A replacement: what it replaces is still there.
    operation('creating', 'a'),
  ];
  beforeEach(async () => {
    const environment = { 'ci.build.url': 'https://ci.example/7', 'git.head': 'abcdef0123456789' };
    await up([{ name: 'a', inputs: { key: secretOf('v1:abc') } }], { environment, isLost: true, pending });
  });

  test('are shown with the run that has left them', async () => {
    expect(await read('stacks.pending')).toMatchObject({
      ...{ headVersion: 1, isKnown: true, isCut: false, isRunning: false },
      items: [
        { operation: 'creating', urn: urnOf('new'), id: null, isImportable: true },
        { operation: 'deleting', urn: urnOf('a'), id: 'i-1', isImportable: false },
        { operation: 'creating', urn: urnOf('x') },
        { operation: 'creating', urn: urnOf('a') },
      ],
      leftBy: { version: 1, status: 'cancelled', endReason: 'cancelled', commit: 'abcdef0123456789' },
    });
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: stateOf(stack, []) }));
    expect(await read('stacks.pending')).toMatchObject({ headVersion: 2, items: [], leftBy: null });
  });

  test('are cleared, or their created resources are added, in a new version that keeps everything else', async () => {
    const repairs = [
      { index: 0, urn: urnOf('new'), repair: { action: 'import', id: 'b-"7' } },
      { index: 1, urn: urnOf('a'), repair: { action: 'clear' } },
    ];
    expect((await change('stacks.repair', { headVersion: 1, repairs })).data).toEqual({ version: 2 });
    const [before, after] = [(await exportState(app, stack, 1)).json, (await exportState(app, stack)).json];
    const { pending_operations: left, ...others } = after.deployment;
    const { pending_operations: _, ...former } = before.deployment;
    former.resources.push(operation('creating', 'new', { id: 'b-"7' }).resource);
    expect(others).toEqual(former);
    expect(left).toEqual(pending.slice(2));
    expect((await read('versions.list')).items[0]).toMatchObject({ resourceCount: 2 });
    const [event] = await eventsOf('stack.repair');
    expect(event).toMatchObject({ details: { cleared: [urnOf('a')], imported: [urnOf('new')], newVersion: 2 } });
    const all = {
      headVersion: 2,
      repairs: [0, 1].map((index) => ({ index, urn: urnOf(index ? 'a' : 'x'), repair: { action: 'clear' } })),
    };
    expect((await change('stacks.repair', all)).data).toEqual({ version: 3 });
    expect((await read('stacks.pending')).items).toEqual([]);
  });

  test('stay as they are if anything is not as the caller believes', async () => {
    const before = await recorded();
    const viewer = await person(app, stack.organization, 'viewer');
    const clear = (index: number, name: string) => [{ index, urn: urnOf(name), repair: { action: 'clear' } }];
    const repair = (repairs: object[], headVersion = 1, by = token) =>
      change('stacks.repair', { headVersion, repairs }, by);
    expect(await repair(clear(0, 'new'), 1, viewer.token)).toMatchObject({ status: 403 });
    expect(await repair(clear(0, 'new'), 2)).toMatchObject({ error: { kind: 'stack-changed' } });
    expect(await repair(clear(0, 'a'))).toMatchObject({ status: 400 });
    expect(await repair(clear(3, 'new'))).toMatchObject({ status: 400 });
    expect(await repair([])).toMatchObject({ status: 400 });
    const wrong = [{ index: 1, urn: urnOf('a'), repair: { action: 'import', id: 'i' } }];
    expect(await repair(wrong)).toMatchObject({ status: 400 });
    const replacing = [{ index: 3, urn: urnOf('a'), repair: { action: 'import', id: 'i' } }];
    expect((await repair(replacing)).error?.message).toContain('is already in the state');
    expect(await recorded()).toEqual(before);
    await startUpdate(app, stack);
    expect(await repair(clear(0, 'new'))).toMatchObject({ error: { kind: 'stack-busy' } });
  });
});

describe('two stacks', () => {
  let other: TestStack;
  const encrypt = async (of: TestStack, text: string): Promise<object> => {
    const body = { plaintext: Buffer.from(text).toString('base64') };
    return secretOf((await ok(app.call('POST', `${of.path}/encrypt`, { auth: of.auth, body }))).json.ciphertext);
  };
  beforeEach(async () => {
    const body = { stackName: 'prod' };
    await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body }));
    other = { ...stack, stack: 'prod', path: stack.path.replace(/dev$/, 'prod') };
    const resources = async (of: TestStack, size: number, key: string): Promise<TestResource[]> => [
      { name: 'p', type: 'pulumi:providers:test', id: of.stack },
      { name: 'same', provider: 'p', parent: 'root', id: of.stack, inputs: { key: await encrypt(of, 'k') } },
      { name: 'sized', parent: 'root', dependencies: ['same'], inputs: { size, key: await encrypt(of, 'k') } },
      { name: 'sealed', inputs: { key: await encrypt(of, key) }, outputs: { arn: of.stack } },
      { name: of.stack },
    ];
    await up(await resources(stack, 1, 'one'));
    await up(await resources(other, 2, 'two'), {}, other);
  });
  const shown = (data: { items: { name: string; change: string; paths: { path: string }[] }[] }) =>
    data.items.map(({ change, name, paths }) => [name, change, paths.map(({ path }) => path)]);

  test('are compared by type and name, without what is their own and without secrets', async () => {
    const data = await read('versions.diffStacks', { other: ref(other) });
    expect(shown(data)).toEqual([
      ['sized', 'updated', ['inputs.size']],
      ['prod', 'created', []],
      ['dev', 'deleted', []],
    ]);
    expect(data).toMatchObject({ fromVersion: 1, toVersion: 1, secretsNotCompared: 3, mayCompareSecrets: true });
    const withOutputs = await read('versions.diffStacks', { other: ref(other), outputs: true });
    expect(shown(withOutputs)[1]).toEqual(['sealed', 'updated', ['outputs.arn']]);
    const first = await read('versions.diffStacks', { other: ref(other), limit: 2 });
    const second = await read('versions.diffStacks', { other: ref(other), limit: 2, cursor: first.next });
    expect([...shown(first), ...shown(second)]).toEqual(shown(data));
    expect(await eventsOf('secret.decrypt')).toEqual([]);
  });

  test('differ in a secret only for those who may decrypt both, which is recorded for both', async () => {
    const data = await read('versions.diffStacks', { other: ref(other), secrets: true });
    expect(shown(data)[1]).toEqual(['sealed', 'updated', ['inputs.key']]);
    expect(data.items[1].paths).toEqual([
      { path: 'inputs.key', before: { '[secret]': true }, after: { '[secret]': true } },
    ]);
    expect(shown(data)).toHaveLength(4);
    expect(data.secretsNotCompared).toBe(0);
    const events = await eventsOf('secret.decrypt');
    expect(events.map(({ object }) => object).sort()).toEqual([
      `${stack.organization}/proj/dev`,
      `${stack.organization}/proj/prod`,
    ]);
    const denied = await person(app, stack.organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', ['decrypt'], { stacks: '*/prod' });
    const input = { ...ref(), other: ref(other) };
    expect(await ask(app, denied.token, 'versions.diffStacks', { ...input, secrets: true })).toMatchObject({
      status: 403,
    });
    expect((await ask(app, denied.token, 'versions.diffStacks', input)).data.mayCompareSecrets).toBe(false);
  });

  test('with secrets of another server look up its key once', async () => {
    const foreign = Buffer.concat([Buffer.from([1]), Buffer.alloc(16, 7), Buffer.alloc(60)]).toString('base64');
    const resources = Array.from({ length: 30 }, (_, at) => ({
      name: `far-${at}`,
      inputs: { a: secretOf(foreign), b: secretOf(foreign) },
    }));
    await up(resources);
    await up(resources, {}, other);
    const find = jest.spyOn(DataKeys.prototype, 'find');
    try {
      const data = await read('versions.diffStacks', { other: ref(other), secrets: true });
      expect(data.secretsNotCompared).toBe(60);
      expect(find.mock.calls.length).toBeLessThanOrEqual(2);
    } finally {
      find.mockRestore();
    }
  });

  test('are not compared for callers who may not read both', async () => {
    const denied = await person(app, stack.organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', ['read'], { stacks: '*/prod' });
    expect(await ask(app, denied.token, 'versions.diffStacks', { ...ref(), other: ref(other) })).toMatchObject({
      status: 404,
    });
    const foreign = await createStack(app);
    expect(await ask(app, token, 'versions.diffStacks', { ...ref(), other: ref(foreign) })).toMatchObject({
      status: 404,
    });
  });
});

test('the version, commit and person that set each property are known, or since when they are not', async () => {
  const index = async () => app.context.indexer.index(await stackId(app, stack));
  const blame = async (name: string) => {
    const { changes, properties } = await read('resources.blame', { urn: urnOf(name) });
    return {
      changes,
      set: properties.map(({ isExact, path, version }: { isExact: boolean; path: string; version: number }) => [
        ...[path, isExact ? version : `up to ${version}`],
      ]),
    };
  };
  await up([{ name: 'old', inputs: { x: 1, y: { z: 1 } } }]);
  expect((await blame('old')).set[0]).toEqual(['inputs.x', 'up to 1']);
  await index();
  await up([
    { name: 'old', inputs: { x: 2, y: { z: 1 } } },
    { name: 'new', inputs: { a: secretOf('v1:a') } },
  ]);
  await index();
  const environment = { 'git.head': 'abcdef0123456789', 'ci.build.url': 'https://ci.example/1' };
  const outputs = { b: 1 };
  await up(
    [
      { name: 'old', inputs: { x: 2, y: { z: 3 } } },
      { name: 'new', inputs: { a: secretOf('v1:b') }, outputs },
    ],
    {
      environment,
    },
  );
  await index();
  expect(await blame('old')).toMatchObject({
    set: [
      ['inputs.x', 2],
      ['inputs.y.z', 3],
    ],
    changes: [
      { version: 3, commit: 'abcdef0123456789', ciUrl: 'https://ci.example/1' },
      { version: 2, commit: null },
    ],
  });
  expect((await blame('new')).set).toEqual([
    ['inputs.a', 3],
    ['outputs.b', 3],
  ]);
  // Not indexed yet: one version, and then one of two, has set what differs from the indexed state.
  await up([{ name: 'old', inputs: { w: 1, x: 2, y: { z: 3 } } }]);
  expect((await blame('old')).set).toEqual([
    ['inputs.w', 4],
    ['inputs.x', 2],
    ['inputs.y.z', 3],
  ]);
  await up([{ name: 'old', inputs: { w: 1, x: 5, y: { z: 3 } } }]);
  expect((await blame('old')).set).toEqual([
    ['inputs.w', 'up to 5'],
    ['inputs.x', 'up to 5'],
    ['inputs.y.z', 3],
  ]);
});

test('while an update runs, each property is attributed to it or to the version that set it before', async () => {
  const index = async () => app.context.indexer.index(await stackId(app, stack));
  for (const environment of [{ 'git.head': 'aaaaaaa1' }, { 'git.head': 'bbbbbbb2' }])
    await up([{ name: 'old', inputs: { x: 1, y: environment } }], { environment }).then(index);
  const update = await startUpdate(app, stack);
  const blame = async () => {
    const { changes, indexedVersion, newestVersion, properties } = await read('resources.blame', { urn: urnOf('old') });
    expect(properties.every(({ isExact }: { isExact: boolean }) => isExact)).toBe(true);
    return {
      set: Object.fromEntries(
        properties.map(({ path, version }: { path: string; version: number }) => [path, version]),
      ),
      changes: changes.map(({ by, commit, version }: { by: string; commit: string; version: number }) => ({
        ...{ version, commit, isNamed: typeof by === 'string' },
      })),
      versions: [indexedVersion, newestVersion],
    };
  };
  const former = [
    { version: 2, commit: 'bbbbbbb2', isNamed: true },
    { version: 1, commit: 'aaaaaaa1', isNamed: true },
  ];
  await index();
  const y = `inputs.y["git.head"]`;
  expect(await blame()).toMatchObject({ set: { 'inputs.x': 1, [y]: 2 }, changes: former });
  const inputs = { x: 1, y: { 'git.head': 'ccccccc3' }, z: 1 };
  await ok(
    app.call('PATCH', `${update.path}/checkpoint`, {
      ...{ auth: update.lease, body: stateOf(stack, [{ name: 'old', inputs }]) },
    }),
  );
  const set = { 'inputs.x': 1, [y]: 3, 'inputs.z': 3 };
  const running = { version: 3, commit: null, isNamed: true };
  expect(await blame()).toEqual({ set, changes: [running, former[1]], versions: [3, 3] });
  await index();
  expect(await blame()).toEqual({ set, changes: [running, former[1]], versions: [3, 3] });
  await ok(complete(app, update));
  await index();
  expect(await blame()).toEqual({ set, changes: [running, former[1]], versions: [3, 3] });
});

test('a version is shown by resource and as text without its secrets, and is sent as it is', async () => {
  const resources = [{ name: 'a', inputs: { key: secretOf('v1:hidden') } }, { name: 'b' }, { name: 'c' }];
  await up(resources);
  await up([{ name: 'a' }]);
  const first = await read('versions.resources', { version: 1, limit: 2 });
  expect(first).toMatchObject({ resourceCount: 3, isText: true, items: [{ name: 'a' }, { name: 'b' }] });
  expect((await read('versions.resources', { version: 1, limit: 2, cursor: first.next })).items).toHaveLength(1);
  expect((await read('versions.resources', { version: 1, text: '::B' })).items).toMatchObject([{ name: 'b' }]);
  expect(await read('resources.get', { version: 1, urn: urnOf('a') })).toMatchObject({
    inputs: { key: { '[secret]': true } },
  });
  expect(await read('resources.get', { urn: urnOf('a') })).toMatchObject({ inputs: null });
  const { text } = await read('versions.text', { version: 1 });
  expect(text).toBe((await exportState(app, stack, 1)).text.replace('v1:hidden', '[secret]'));
  const { login } = await person(app, stack.organization, 'viewer');
  const browser = await browserOf(app, login);
  const before = (await eventsOf('stack.export')).length;
  const path = `/trpc/states/${stack.organization}/proj/dev`;
  const file = await browser.get(`${path}/1`, { 'sec-fetch-site': 'same-origin' });
  expect(file).toMatchObject({ status: 200, text: (await exportState(app, stack, 1)).text });
  expect(file.headers['content-disposition']).toBe('attachment; filename="proj-dev-1.json"');
  expect((await browser.get(`${path}/1`, { 'sec-fetch-site': 'same-site' })).status).toBe(403);
  expect((await browser.get(`${path}/9`, { 'sec-fetch-site': 'same-origin' })).status).toBe(404);
  expect((await app.call('GET', `${path}/1`, {})).status).toBe(401);
  const stranger = await person(app, `${stack.organization}-x`, 'admin');
  expect((await app.call('GET', `${path}/1`, { auth: stranger.auth })).status).toBe(404);
  // That of the export to compare with, and the file.
  expect((await eventsOf('stack.export')).length).toBe(before + 2);
});

test('large texts of one request take no more memory than there is for answers', async () => {
  await up([{ name: 'a', inputs: { value: 'x'.repeat(4_500_000) } }]);
  const texts = async (count: number) => {
    const inputs = Array.from({ length: count }, () => ({ ...ref(), version: 1 }));
    const names = inputs.map(() => 'versions.text').join(',');
    const search = `batch=1&input=${encodeURIComponent(JSON.stringify({ ...inputs }))}`;
    const { json } = await app.call('GET', `/trpc/${names}?${search}`, { auth: stack.auth, accept: null });
    return (json as { result?: object; error?: { message: string; data: { httpStatus: number } } }[]).map(
      ({ error }) => (error ? [error.data.httpStatus, error.message] : 'shown'),
    );
  };
  const refused = [413, expect.stringContaining('send the call separately')];
  const answers = await texts(6);
  expect(answers.filter((each) => each === 'shown')).toHaveLength(3);
  expect(answers.filter((each) => each !== 'shown')).toEqual([refused, refused, refused]);
  // Nothing is held any more.
  expect(await texts(3)).toEqual(['shown', 'shown', 'shown']);
});

test('large resources that differ end a page early, and none is left out or called new', async () => {
  const names = ['a', 'b', 'c', 'd'];
  const resources = (value: string) => names.map((name) => ({ name, inputs: { value } }));
  await up(resources('x'.repeat(6_000_000)));
  await up(resources('y'));
  const pagesOf = async (procedure: string, input: object) => {
    const pages: string[][] = [];
    let cursor: string | null = null;
    do {
      const page = await read(procedure, { ...input, limit: 50, cursor });
      pages.push(page.items.map(({ change: how, name }: { change: string; name: string }) => `${name} ${how}`));
      cursor = page.next;
    } while (cursor !== null);
    return pages;
  };
  const pages = [['a updated', 'b updated', 'c updated'], ['d updated']];
  expect(await pagesOf('versions.diff', { from: 1, to: 2 })).toEqual(pages);
  expect(await pagesOf('versions.diffStacks', { version: 1, other: { ...ref(), version: 2 } })).toEqual(pages);
  expect(await pagesOf('versions.diffStacks', { version: 2, other: { ...ref(), version: 1 } })).toEqual(pages);
});

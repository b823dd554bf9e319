import { beforeEach, expect, test } from '@jest/globals';
import { createResourceRepository } from '../../src/api/search/resource-repository.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { person } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { stackId, stateOf, type TestResource } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();
let stack: TestStack;
beforeEach(async () => {
  stack = await createStack(app);
});

const ref = () => ({ organization: stack.organization, project: stack.project, stack: stack.stack });
const call = async (procedure: string, input: object = {}) =>
  ask(app, stack.auth.replace('token ', ''), procedure, { ...ref(), ...input });
const read = async (procedure: string, input: object = {}) => {
  const { data, error } = await call(procedure, input);
  expect(error).toBeNull();
  return data;
};
const urnOf = (name: string) => `urn:pulumi:dev::proj::test:index:Bucket::${name}`;
const secret = {
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext: 'v1:aGlkZGVuIHRleHQ=',
};

async function up(resources: TestResource[], environment: object = {}): Promise<void> {
  const body = { options: {}, metadata: { message: 'm', environment } };
  const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const { json: started } = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
  const lease = `update-token ${started.token}`;
  await ok(app.call('PATCH', `${path}/checkpoint`, { auth: lease, body: stateOf(stack, resources) }));
  await ok(complete(app, { id: json.updateID, path, lease, version: started.version }));
}
const index = async () => app.context.indexer.index(await stackId(app, stack));

test('resources are listed, shown as a tree and as a graph, each with its last change', async () => {
  const before = [
    { name: 'a' },
    { name: 'b', parent: 'a' },
    { name: 'c', parent: 'a', dependencies: ['b'] },
    { name: 'far' },
    { name: 'Äpfel' },
  ];
  await up(before);
  expect(await read('resources.list')).toMatchObject({ items: [], indexedVersion: null, headVersion: 1 });
  await index();
  expect((await read('resources.list', { text: 'Äpf' })).items).toMatchObject([{ name: 'Äpfel' }]);
  await up([...before.slice(0, 3), { name: 'far', inputs: { x: 1 } }]);
  expect(await read('resources.list')).toMatchObject({ indexedVersion: 1, headVersion: 2 });
  await index();
  const first = await read('resources.list', { limit: 3 });
  expect(first.items.map(({ name }: { name: string }) => name)).toEqual(['a', 'b', 'c']);
  expect(first.items[2]).toEqual({
    ...{
      urn: urnOf('c'),
      type: 'test:index:Bucket',
      name: 'c',
      parent: urnOf('a'),
      provider: null,
      providerVersion: null,
    },
    ...{
      protect: false,
      isCustom: true,
      isExternal: false,
      isDeleted: false,
      dependencies: 1,
      children: 0,
      changedIn: 1,
    },
  });
  const second = await read('resources.list', { limit: 3, cursor: first.next });
  expect(second).toMatchObject({ items: [{ name: 'far', changedIn: 2 }], next: null, indexedVersion: 2 });
  expect((await read('resources.list', { text: 'FAR' })).items).toHaveLength(1);
  expect((await read('resources.list', { type: 'other' })).items).toEqual([]);
  expect((await read('resources.tree', { parent: null })).items).toMatchObject([
    { name: 'a', children: 2 },
    { name: 'far' },
  ]);
  expect((await read('resources.tree', { parent: urnOf('a') })).items).toMatchObject([{ name: 'b' }, { name: 'c' }]);
  expect(await read('resources.graph')).toMatchObject({
    ...{ heads: [urnOf('')], headOf: [0, 0, 0, 0], names: ['a', 'b', 'c', 'far'] },
    ...{ parents: [-1, 0, 0, -1], needs: [[], [], [1], []], isCut: false },
  });
});

test('the commit of a change is shown however large the environment of its update is', async () => {
  const environment = {
    ...Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`VARIABLE_${at}`, '"\\{"git.head":"fff0000"}'])),
    ...{ 'git.head': 'abcdef0123456789', 'git.headName': 'refs/heads/main', 'ci.build.url': 'https://ci.example/1' },
  };
  await up([{ name: 'a' }]);
  await index();
  await up([{ name: 'a', inputs: { x: 1 } }], environment);
  await index();
  const expected = { commit: 'abcdef0123456789', branch: 'main', ciUrl: 'https://ci.example/1' };
  const history = await read('resources.history', { urn: urnOf('a') });
  expect(history.items).toMatchObject([expected, { commit: null, branch: null, ciUrl: null }]);
  expect((await read('updates.list')).items).toMatchObject([expected, { commit: null, branch: null, ciUrl: null }]);
  const stacks = await read('stacks.list');
  expect(stacks.items).toMatchObject([{ lastUpdate: { commit: 'abcdef0123456789' } }]);
});

test('a page of a graph has few dependencies, however many each resource has', async () => {
  const names = Array.from({ length: 1_500 }, (_, at) => `d${at}`);
  await up([{ name: 'c', dependencies: names }, ...['a', 'b'].map((name) => ({ name }))]);
  await index();
  const id = await stackId(app, stack);
  const rows = createResourceRepository(app.context.db);
  const addRows = (count: number) =>
    app.context.db.query(sql.nothing`
      insert into stack_resources
      select (jsonb_populate_record(r, jsonb_build_object('key', 'more' || n, 'place', 'z' || n))).*
      from stack_resources r, generate_series(1, ${count}::integer) n where r.stack_id = ${id} and r.name = 'c'`);
  await addRows(30);
  const page = await rows.listEdges(id, null, 5_000);
  expect(page.length).toBeGreaterThan(10);
  expect(page.reduce((sum, { dependencies }) => sum + dependencies.length, 0)).toBeLessThan(22_000);
  expect((await read('resources.graph')).names).toHaveLength(33);
});

test('a graph finds resources many pages away', async () => {
  const resources = Array.from({ length: 5_100 }, (_, at) => ({ name: `r${String(at).padStart(4, '0')}` }));
  await up([...resources, { name: 'z', dependencies: ['r0000', 'r5099'] }]);
  await index();
  const { isCut, names, needs } = await read('resources.graph');
  expect(needs[names.indexOf('z')].map((at: number) => names[at]).sort()).toEqual(['r0000', 'r5099']);
  expect(names).toHaveLength(5_101);
  expect(isCut).toBe(false);
});

test('a resource is shown without its secrets, with what depends on it and which commit changed it', async () => {
  await up([
    { name: 'a', inputs: { plain: [1, { deep: secret }], key: secret } },
    { name: 'b', dependencies: ['a'] },
  ]);
  await index();
  const environment = { 'git.head': 'abcdef0123456789', 'ci.build.url': 'https://ci.example/1' };
  await up(
    [
      { name: 'a', inputs: { plain: [2, { deep: secret }], key: secret } },
      { name: 'b', dependencies: ['a'] },
    ],
    environment,
  );
  await index();
  const shown = await read('resources.get', { urn: urnOf('a') });
  expect(shown).toMatchObject({
    inputs: { plain: [2, { deep: { '[secret]': true } }], key: { '[secret]': true } },
    outputs: null,
    dependents: [urnOf('b')],
    changedIn: 2,
  });
  const history = await read('resources.history', { urn: urnOf('a') });
  expect(history.items).toMatchObject([
    {
      version: 2,
      change: 'updated',
      paths: ['inputs.plain[0]'],
      commit: 'abcdef0123456789',
      ciUrl: 'https://ci.example/1',
    },
    { version: 1, change: 'created', commit: null },
  ]);
  expect((await call('resources.get', { urn: urnOf('none') })).error).toMatchObject({ code: 'NOT_FOUND' });
});

test('versions are listed with what they changed, and any two are compared without showing secrets', async () => {
  const other = { ...secret, ciphertext: 'v1:b3RoZXIgdGV4dA==' };
  await up([{ name: 'a', id: '1', inputs: { x: 1, key: secret } }, { name: 'b' }, { name: 'c', id: '1' }]);
  await up([
    { name: 'a', id: '1', inputs: { x: 2, key: other } },
    { name: 'c', id: '2' },
    { name: 'd', modified: 'now' },
  ]);
  await index();
  expect((await read('versions.list')).items).toMatchObject([
    { version: 2, kind: 'update', changed: { created: 1, updated: 1, deleted: 1, replaced: 1 } },
    { version: 1, changed: null },
  ]);
  const pages = [];
  for (let cursor: string | null = null; ; ) {
    const page: { items: object[]; next: string | null } = await read('versions.diff', {
      from: 1,
      to: 2,
      limit: 1,
      cursor,
    });
    pages.push(...page.items);
    cursor = page.next;
    if (cursor === null) break;
  }
  expect(pages).toMatchObject([
    {
      urn: urnOf('a'),
      change: 'updated',
      paths: [
        { path: 'inputs.x', before: 1, after: 2 },
        { path: 'inputs.key', before: { '[secret]': true }, after: { '[secret]': true } },
      ],
    },
    { name: 'c', change: 'replaced', paths: [{ path: 'id', before: '1', after: '2' }] },
    { name: 'd', change: 'created' },
    { name: 'b', change: 'deleted' },
  ]);
  expect(JSON.stringify(pages)).not.toContain('v1:');
  const ofType = (typePrefix: string) => read('versions.diff', { from: 1, to: 2, typePrefix });
  expect((await ofType('pulumi:providers:')).items).toEqual([]);
  expect((await ofType('')).items).toHaveLength(4);
  expect((await read('versions.diff', { from: 2, to: 2 })).items).toEqual([]);
  expect((await read('versions.diff', { from: 0, to: 1 })).items).toHaveLength(3);
  expect((await call('versions.diff', { from: 1, to: 9 })).error).toMatchObject({ code: 'NOT_FOUND' });
});

test('a caller who may not see the stack does not learn that it exists', async () => {
  const stranger = await person(app, 'strangers', 'admin');
  const calls: [string, object][] = [
    ['resources.list', {}],
    ['resources.tree', { parent: null }],
    ['resources.get', { urn: urnOf('a') }],
    ['resources.history', { urn: urnOf('a') }],
    ['resources.graph', {}],
    ['versions.list', {}],
    ['versions.diff', { from: 0, to: 1 }],
  ];
  for (const [procedure, input] of calls)
    expect((await ask(app, stranger.token, procedure, { ...ref(), ...input })).error).toMatchObject({
      code: 'NOT_FOUND',
    });
});

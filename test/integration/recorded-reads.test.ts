import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { appRouter } from '../../src/api/router.ts';
import { fencedBy } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { ask, queryPath } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack, gzipped, ok, type TestStack } from '../support/state.ts';
import { stackId, stateOf } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const value = `value-${randomUUID()}`;
const urn = 'urn:pulumi:dev::proj::test:index:Bucket::a';
let stack: TestStack;
let token: string;
/** A stack with other values. */
const other = () => ({ organization: stack.organization, project: 'proj', stack: 'other' });

beforeAll(async () => {
  stack = await createStack(app);
  // A member who may do everything.
  token = await app.createUser(stack.organization, 'admin', 'walker');
  await query(app, 'update users set site_admin = true where login = $1', ['walker']);
  await ok(
    app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: 'other' } }),
  );
  for (const each of [stack, { ...stack, stack: 'other', path: stack.path.replace(/dev$/, 'other') }]) {
    const root = {
      name: `proj-${each.stack}`,
      type: 'pulumi:pulumi:Stack',
      outputs: { shown: `${value}-${each.stack}` },
    };
    const resources = [root, { name: 'a', inputs: { in: `${value}-${each.stack}` }, outputs: { out: value } }];
    await ok(app.call('POST', `${each.path}/import`, { auth: stack.auth, ...gzipped(stateOf(each, resources)) }));
    await app.context.indexer.index(await stackId(app, each));
  }
});

const readActions = ['stack.export', 'stack.journal', 'secret.decrypt', 'secret.show'];
const countReads = async (): Promise<number> =>
  (await listEvents(app, stack.organization)).filter(({ action }) => readActions.includes(action)).length;

test('each procedure and route that returns values of a state records the read', async () => {
  const inputs: Readonly<Record<string, object>> = {
    'resources.get': { urn },
    'resources.blame': { urn },
    'resources.history': { urn },
    'versions.diff': { from: 0, to: 1 },
    'search.list': { query: 'Bucket' },
  };
  const { procedures } = appRouter._def as unknown as { procedures: Record<string, { _def: { type: string } }> };
  const calls: Record<string, () => Promise<string>> = {};
  for (const [name, { _def }] of Object.entries(procedures)) {
    if (_def.type !== 'query') continue;
    const { input = {} } = procedureTable[name] ?? {};
    const given = inputs[name] ?? (typeof input === 'function' ? input(other()) : input);
    const { organization, project } = stack;
    calls[name] = async () =>
      JSON.stringify((await ask(app, token, name, { organization, project, stack: 'dev', ...given })).data ?? '');
  }
  const ids: Readonly<Record<string, string>> = {
    ...other(),
    stack: 'dev',
    name: stack.organization,
    stackVersion: '1',
  };
  for (const route of listRoutes(app.app)) {
    const [method, pattern = ''] = route.split(' ');
    if (method !== 'GET' || pattern === '/trpc/:procedures') continue;
    const url = pattern
      .replace(/:kind\(.*\)\//, 'update/')
      .replace(/:(\w+)/g, (_, key: string) => ids[key] ?? randomUUID());
    calls[route] = async () => (await app.call('GET', url, { auth: `token ${token}` })).text;
  }
  const recorded: string[] = [];
  const unrecorded: string[] = [];
  for (const [name, call] of Object.entries(calls)) {
    const before = await countReads();
    if (!(await call()).includes(value)) continue;
    ((await countReads()) > before ? recorded : unrecorded).push(name);
  }
  expect(unrecorded).toEqual([]);
  expect(recorded.sort()).toEqual([
    'GET /api/stacks/:organization/:project/:stack/export',
    'GET /api/stacks/:organization/:project/:stack/export/:stackVersion',
    'GET /trpc/states/:organization/:project/:stack/:stackVersion',
    ...['resources.get', 'stacks.get', 'versions.diff', 'versions.diffStacks', 'versions.text'],
  ]);
});

test('a repeated read of the same values is one event, and an event has the versions', async () => {
  const reader = await app.createUser(stack.organization, 'viewer', 'reader');
  const ref = { ...other(), stack: 'dev' };
  for (let repeat = 0; repeat < 3; repeat++)
    for (const [procedure, input] of [
      ['stacks.get', {}],
      ['resources.get', { urn }],
      ['resources.get', { urn, version: 1 }],
      ['versions.diff', { from: 0, to: 1 }],
      ['versions.diffStacks', { other: other() }],
    ] as const)
      expect((await ask(app, reader, procedure, { ...ref, ...input })).error).toBeNull();
  const events = (await listEvents(app, stack.organization)).filter(({ login }) => login === 'reader');
  const dev = `${stack.organization}/proj/dev`;
  const secrets = 'redacted';
  expect(events.map(({ action, details, object }) => [action, object, details])).toEqual([
    ['stack.export', dev, { stackVersion: 1, outputsOnly: true, secrets }],
    ['stack.export', dev, { stackVersion: 'newest', view: 'resource', secrets }],
    ['stack.export', dev, { stackVersion: 1, view: 'resource', secrets }],
    ['stack.export', dev, { stackVersion: 1, comparedWith: 0, view: 'differences', secrets }],
    ['stack.export', dev, { stackVersion: 1, comparedWith: dev.replace('dev', 'other'), view: 'differences', secrets }],
    ['stack.export', dev.replace('dev', 'other'), { stackVersion: 1, comparedWith: dev, view: 'differences', secrets }],
  ]);
});

test('the log of an organization names no stack of another one with which somebody compares', async () => {
  const elsewhere = await createStack(app);
  const login = 'in-both';
  const reader = await app.createUser(stack.organization, 'member', login);
  await app.createUser(elsewhere.organization, 'member', login);
  const { auth, organization } = stack;
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: 'compared' } }));
  const own = { ...stack, stack: 'compared', path: `/api/stacks/${organization}/proj/compared` };
  for (const each of [own, elsewhere]) {
    const body = { plaintext: Buffer.from(each.organization).toString('base64') };
    const { ciphertext } = (await ok(app.call('POST', `${each.path}/encrypt`, { auth: each.auth, body }))).json;
    const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext };
    const state = stateOf(each, [{ name: 'a', inputs: { plain: each.organization, secret } }]);
    await ok(app.call('POST', `${each.path}/import`, { auth: each.auth, ...gzipped(state) }));
  }
  const place = ({ organization, project, stack }: TestStack) => ({ organization, project, stack });
  const input = { ...place(own), other: place(elsewhere), secrets: true };
  expect((await ask(app, reader, 'versions.diffStacks', input)).error).toBeNull();
  for (const [here, there] of [
    [organization, elsewhere.organization],
    [elsewhere.organization, organization],
  ] as const) {
    const events = (await listEvents(app, here)).filter((event) => event.login === login);
    expect(events.map(({ action }) => action).sort()).toEqual(['secret.decrypt', 'stack.export']);
    expect(JSON.stringify(events)).not.toContain(there);
    for (const { details } of events)
      expect(details).toMatchObject({ comparedWith: 'a stack of another organization' });
  }
});

test('a repeated read with another program, or of another stack of the same name, is another event', async () => {
  const reader = await app.createUser(stack.organization, 'viewer', 'of-two');
  const ref = { organization: stack.organization, project: 'proj', stack: 'again' };
  const path = `/api/stacks/${ref.organization}/proj/again`;
  const create = async (): Promise<void> => {
    await ok(app.call('POST', path.replace(/\/again$/, ''), { auth: stack.auth, body: { stackName: 'again' } }));
    const root = { name: 'proj-again', type: 'pulumi:pulumi:Stack', outputs: { shown: value } };
    const state = stateOf({ ...stack, stack: 'again' }, [root]);
    await ok(app.call('POST', `${path}/import`, { auth: stack.auth, ...gzipped(state) }));
  };
  const read = (program: string) =>
    ok(
      app.call('GET', queryPath('stacks.get', ref), {
        ...{ auth: `token ${reader}`, accept: null, headers: { 'user-agent': program } },
      }),
    );
  await create();
  for (const program of ['one', 'two', 'one']) await read(program);
  await ok(app.call('DELETE', `${path}?force=true`, { auth: stack.auth }));
  await create();
  for (const program of ['one', 'one']) await read(program);
  const events = (await listEvents(app, stack.organization)).filter(({ login }) => login === 'of-two');
  expect(events.map((event) => event['user_agent'])).toEqual(['one', 'two', 'one']);
});

test('a fenced site refuses these reads, and shows stacks without their outputs', async () => {
  const ref = { ...other(), stack: 'dev' };
  app.context.readOnly.remember(fencedBy(new Date()));
  try {
    for (const [procedure, input] of [
      ['resources.get', { urn }],
      ['versions.diff', { from: 0, to: 1 }],
      ['versions.diffStacks', { other: other() }],
    ] as const)
      expect(await ask(app, token, procedure, { ...ref, ...input })).toMatchObject({ status: 503, data: undefined });
    expect((await ask(app, token, 'stacks.get', ref)).data).toMatchObject({ version: 1, outputs: null });
  } finally {
    app.context.readOnly.remember(null);
  }
});

test('a database that takes no writes refuses these reads, and shows stacks without their outputs', async () => {
  const ref = { ...other(), stack: 'dev' };
  // Nobody else's read has recorded the outputs.
  const reader = await app.createUser(stack.organization, 'viewer', 'of-standby');
  await query(app, 'alter table audit_events add constraint audit_events_refused check (false) not valid');
  try {
    const refused = await ask(app, reader, 'resources.get', { ...ref, urn });
    expect(refused).toMatchObject({ status: 503, data: undefined });
    expect((await ask(app, reader, 'stacks.get', ref)).data).toMatchObject({ version: 1, outputs: null });
  } finally {
    await query(app, 'alter table audit_events drop constraint audit_events_refused');
  }
});

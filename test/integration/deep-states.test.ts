import { beforeAll, expect, test } from '@jest/globals';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();

/** As deep as a value may be: the document, `deployment`, the list and the resource are above it. */
const depth = 9_900;
const secretKey = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"';

function nested(levels: number, inner: string, shape: 'array' | 'object'): string {
  const [open, close] = shape === 'array' ? ['[', ']'] : ['{"a":', '}'];
  return `${open.repeat(levels)}${inner}${close.repeat(levels)}`;
}

const rootUrn = 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev';
const deepUrn = 'urn:pulumi:dev::proj::test:index:Deep::deep';

/** A document whose values are nested as deep as the CLI accepts, with `note` at the bottom. */
function deepState(note: string): string {
  const list = nested(depth, `"${note}"`, 'array');
  const object = nested(depth, `"${note}"`, 'object');
  const secret = nested(depth, `{${secretKey},"ciphertext":"${note}"}`, 'object');
  const resources = [
    `{"urn":"${rootUrn}","custom":false,"type":"pulumi:pulumi:Stack","outputs":{"list":${list},"object":${object},"secret":${secret}}}`,
    `{"urn":"${deepUrn}","custom":true,"id":"x","type":"test:index:Deep","parent":"${rootUrn}","inputs":{"list":${list},"secret":${secret}},` +
      `"outputs":{"object":${object}},"dependencies":${list},"propertyDependencies":${object},"aliases":${list}}`,
  ];
  const manifest = '{"time":"2026-01-01T00:00:00Z","magic":"","version":""}';
  const pending = `[{"type":"creating","resource":{"urn":"${deepUrn}2","custom":true,"type":"test:index:Deep","inputs":${object}}}]`;
  return `{"version":3,"deployment":{"manifest":${manifest},"resources":[${resources.join(',')}],"pending_operations":${pending}}}`;
}

let stack: TestStack;
let token: string;
let updateId: string;

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
  const other = { ...stack, stack: 'copy', path: stack.path.replace(/dev$/, 'copy') };
  const { auth } = stack;
  await ok(app.call('POST', other.path.replace(/.copy$/, ''), { auth, body: { stackName: 'copy' } }));
  await ok(app.call('POST', `${other.path}/import`, { auth, body: deepState('x').replaceAll('::dev', '::copy') }));
  for (const note of ['one', 'other'])
    await ok(app.call('POST', `${stack.path}/import`, { auth, body: deepState(note) }));
  const update = await startUpdate(app, stack);
  updateId = update.id;
  const event = `{"sequence":0,"timestamp":1,"preludeEvent":{"config":{"a":${nested(depth, '1', 'object')}}}}`;
  const body = `{"events":[${event}]}`;
  await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body }));
  await ok(complete(app, update));
  await app.context.indexer.index(await stackId(app, stack));
});

const place = () => ({ organization: stack.organization, project: stack.project, stack: stack.stack });

test('a resource is shown down to a depth, with a mark below it', async () => {
  const { data, error } = await ask(app, token, 'resources.get', { ...place(), urn: deepUrn });
  expect(error).toBeNull();
  const { inputs } = data;
  let value = inputs.list;
  let levels = 1;
  for (; Array.isArray(value); levels++) value = value[0];
  expect(levels).toBe(100);
  expect(value).toEqual({ '[deep]': expect.any(Number) });
  const old = await ask(app, token, 'resources.get', { ...place(), urn: deepUrn, version: 1 });
  expect(old.error).toBeNull();
});

test('every call that reads whole states or events has an answer for the deepest', async () => {
  const other = { ...place(), stack: 'copy' };
  const calls: readonly (readonly [string, object])[] = [
    ['resources.get', { urn: rootUrn }],
    ['resources.blame', { urn: deepUrn }],
    ['resources.history', { urn: deepUrn }],
    ['resources.graph', {}],
    ['resources.list', {}],
    ['versions.diff', { from: 1, to: 2 }],
    ['versions.diff', { from: 0, to: 1 }],
    ['versions.diffStacks', { other, outputs: true }],
    ['versions.diffStacks', { other, outputs: true, secrets: true }],
    ['versions.resources', { version: 2 }],
    ['versions.text', { version: 2 }],
    ['stacks.get', {}],
    ['stacks.pending', {}],
    ['updates.events', { updateId }],
  ];
  for (const [name, input] of calls) {
    const { error, status } = await ask(app, token, name, { ...place(), ...input });
    expect({ name, status, error }).toEqual({ name, status: 200, error: null });
  }
  const { organization, project, stack: name } = stack;
  for (const path of [
    `${stack.path}/export`,
    `${stack.path}/export/1`,
    `${stack.path}/resources/latest`,
    `${stack.path}/updates`,
    `${stack.path}/update/${updateId}/events`,
    `${stack.path}/update/${updateId}`,
    `/trpc/states/${organization}/${project}/${name}/2`,
  ]) {
    const { status } = await app.call('GET', path, {
      auth: stack.auth,
      ...(path.startsWith('/trpc') && { accept: null }),
    });
    expect({ path, status }).toEqual({ path, status: path.includes('resources') ? 404 : 200 });
  }
});

test('a secret at the end is found, and its location is reported as foreign', async () => {
  const path = ['secret', ...Array.from({ length: 60 }, () => 'a')];
  for (const secret of [
    { of: 'output', name: 'secret' },
    { of: 'output', name: 'object' },
    { of: 'resource', urn: deepUrn, part: 'inputs', path: ['secret'] },
    { of: 'resource', urn: deepUrn, part: 'inputs', path },
  ]) {
    const { status } = await command(app, token, 'secrets.reveal', { ...place(), location: secret });
    expect([secret, status]).toEqual([secret, 'object' === (secret as { name?: string }).name ? 404 : 400]);
  }
});

test('the deepest state can be restored, repaired, renamed and indexed', async () => {
  const restored = await command(app, token, 'versions.restore', { ...place(), version: 1, headVersion: 3 });
  expect(restored.error).toBeNull();
  const { headVersion } = (await ask(app, token, 'stacks.pending', place())).data;
  const repairs = [{ index: 0, urn: `${deepUrn}2`, repair: { action: 'clear' } }];
  const repaired = await command(app, token, 'stacks.repair', { ...place(), headVersion: headVersion ?? 4, repairs });
  expect(repaired.error).toBeNull();
  await app.context.indexer.index(await stackId(app, stack));
  const renamed = await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'renamed' } });
  expect(renamed.status).toBe(204);
  const found = await ask(app, token, 'search.list', { query: 'type:test:index:Deep' });
  expect(found.error).toBeNull();
});

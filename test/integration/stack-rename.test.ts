import { describe, expect, jest, test } from '@jest/globals';
import { runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { ask } from '../support/procedures.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';

const app = testApp();

const rename = (stack: TestStack, body: object) => app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body });

function moved(stack: TestStack, project: string, name: string): TestStack {
  return { ...stack, project, stack: name, path: `/api/stacks/${stack.organization}/${project}/${name}` };
}

const serviceState = (stack: TestStack) =>
  `{"type":"service","state":{"url":"https://x","owner":"${stack.organization}","project":"${stack.project}","stack":"${stack.stack}"}}`;

/** A document that names its stack wherever a document can. */
function document(stack: TestStack): string {
  const urn = (type: string, name: string) => `urn:pulumi:${stack.stack}::${stack.project}::${type}::${name}`;
  const root = urn('pulumi:pulumi:Stack', `${stack.project}-${stack.stack}`);
  const provider = urn('pulumi:providers:x', 'default');
  return `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},
"secrets_providers":${serviceState(stack)},"resources":[
{"urn":"${root}","custom":false,"type":"pulumi:pulumi:Stack","outputs":{"n":1.0,"text":"${root}"}},
{"urn":"${provider}","custom":true,"type":"pulumi:providers:x","id":"7","parent":"${root}"},
{"urn":"${urn('x:y:Z$x:y:W', 'a')}","custom":true,"type":"x:y:W","parent":"${root}","provider":"${provider}::7","dependencies":["${provider}"],
"propertyDependencies":{"p":["${provider}"]},"deletedWith":"${root}","aliases":["${urn('x:y:W', 'old')}"],
"inputs":{"ref":{"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","urn":"${provider}"},"big":9007199254740993}}],
"pending_operations":[{"resource":{"urn":"${urn('x:y:W', 'b')}","custom":true,"type":"x:y:W"},"type":"creating"}]}}`;
}

const load = (stack: TestStack, text: string): Promise<TestResponse> =>
  ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(text) }));

describe('the state', () => {
  test('names the new stack everywhere and otherwise keeps its bytes', async () => {
    const stack = await createStack(app);
    await load(stack, document(stack));
    expect((await rename(stack, { newName: 'prod', newProject: 'shop' })).status).toBe(204);
    const next = moved(stack, 'shop', 'prod');
    const exported = (await exportState(app, next)).text;
    // A text that happens to be a URN belongs to the user.
    const kept = `"text":"urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev"`;
    expect(exported).toBe(
      document(next).replace('"text":"urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod"', kept),
    );
  });

  test('of earlier versions keeps the old names', async () => {
    const stack = await createStack(app);
    await load(stack, document(stack));
    await ok(rename(stack, { newName: 'prod' }));
    const next = moved(stack, 'proj', 'prod');
    expect((await exportState(app, next, 1)).text).toBe(document(stack));
    expect((await exportState(app, next, 2)).text).toBe((await exportState(app, next)).text);
  });

  test.each([
    ['no resource', (text: string) => text.replace(/"resources":.*\]\}\}$/su, '"resources":[]}}')],
    ['only a pending operation', (text: string) => text.replace(/"resources":\[.*\],\n/su, '"resources":[],')],
    ['only a secrets provider', (text: string) => text.replace(/,"resources":.*\]\}\}$/su, '}}')],
  ])('of an earlier version with %s gets the new names when it is restored', async (_, cut) => {
    const stack = await createStack(app);
    const text = cut(document(stack));
    await load(stack, text);
    await load(stack, document(stack));
    await ok(rename(stack, { newName: 'prod', newProject: 'shop' }));
    const next = moved(stack, 'shop', 'prod');
    // A stack that has the former name by now is another one.
    const body = { stackName: stack.stack };
    await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body }));
    const ref = `${stack.organization}/shop/prod`;
    expect((await runInProcess(app, 'admin', 'restore', ref, '1')).code).toBe(0);
    expect((await exportState(app, next)).text).toBe(cut(document(next)));
  });

  test('may be absent', async () => {
    const stack = await createStack(app);
    const before = (await exportState(app, stack)).text;
    await ok(rename(stack, { newName: 'prod' }));
    expect((await exportState(app, moved(stack, 'proj', 'prod'))).text).toBe(before);
  });

  test('includes a journal that was not compacted yet', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'late', stack)));
    await ok(cancel(app, stack, update));
    await ok(rename(stack, { newName: 'prod' }));
    const next = moved(stack, 'proj', 'prod');
    expect(await exportedNames(app, next)).toEqual(['late']);
    expect((await exportState(app, next)).text).toContain('urn:pulumi:prod::proj::');
  });
});

test('the old name is free; the new one has the stack with its history', async () => {
  const stack = await createStack(app);
  await ok(
    app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'pulumi:project': 'proj', other: 'kept' } }),
  );
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 1));
  await ok(complete(app, update));
  await ok(rename(stack, { newName: `${stack.organization}/shop/prod` }));
  const next = moved(stack, 'shop', 'prod');
  expect((await app.call('GET', stack.path, { auth: stack.auth })).status).toBe(404);
  expect(await getStack(app, next)).toMatchObject({
    projectName: 'shop',
    stackName: 'prod',
    version: 2,
    tags: { 'pulumi:project': 'shop', other: 'kept' },
  });
  const { json } = await ok(app.call('GET', `${next.path}/updates`, { auth: stack.auth }));
  expect(json.updates).toMatchObject([
    { kind: 'rename', result: 'succeeded', version: 2, message: expect.stringContaining('shop/prod') },
    { kind: 'update', version: 1 },
  ]);
  await ok(
    app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: 'dev' } }),
  );
  expect((await getStack(app, stack)).version).toBe(0);
});

test('the new name alone or the new project alone is enough', async () => {
  const stack = await createStack(app);
  await ok(rename(stack, { newProject: 'shop' }));
  const inShop = moved(stack, 'shop', 'dev');
  await ok(rename(inShop, { newName: 'prod', newProject: '' }));
  expect((await getStack(app, moved(stack, 'shop', 'prod'))).stackName).toBe('prod');
});

test('secrets decrypt under the former name and the one before', async () => {
  const stack = await createStack(app);
  const { json } = await ok(
    app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'c2VjcmV0' } }),
  );
  const second = moved(stack, 'proj', 'two');
  const third = moved(stack, 'other', 'three');
  await ok(rename(stack, { newName: 'two' }));
  await ok(rename(second, { newName: 'three', newProject: 'other' }));
  for (const { path } of [stack, second, third]) {
    const body = { ciphertext: json.ciphertext };
    const decrypted = await ok(app.call('POST', `${path}/decrypt`, { auth: stack.auth, body }));
    expect(decrypted.json.plaintext).toBe('c2VjcmV0');
  }
  // Encryption requires an existing stack.
  const gone = await app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'QQ==' } });
  expect(gone.status).toBe(404);
});

describe('rejected calls change nothing', () => {
  test.each([
    ['an empty request', {}],
    ['a name with a slash', { newName: 'a/b' }],
    ['four parts', { newName: 'a/b/c/d' }],
    ['an invalid name', { newName: 'a b' }],
    ['a dot', { newName: '..' }],
    ['an invalid project', { newName: 'ok', newProject: 'a b' }],
    ['another organization', { newName: 'elsewhere/proj/dev' }],
    ['a number', { newName: 5 }],
  ])('%s returns 400', async (_name, body) => {
    const stack = await createStack(app);
    const response = await rename(stack, body);
    expect([response.status, response.json.code]).toEqual([400, 400]);
    expect((await getStack(app, stack)).version).toBe(0);
  });

  test('a missing source returns 404, an existing target 409', async () => {
    const stack = await createStack(app);
    expect((await rename(moved(stack, 'proj', 'none'), { newName: 'x' })).status).toBe(404);
    await ok(
      app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: 'b' } }),
    );
    const taken = await rename(stack, { newName: 'b' });
    expect([taken.status, taken.json.code]).toEqual([409, 409]);
    expect((await rename(stack, { newName: 'dev' })).status).toBe(409);
    expect((await getStack(app, stack)).version).toBe(0);
  });

  test('returns 409 while an update is active; a preview of the CLI does not count', async () => {
    const stack = await createStack(app);
    await load(stack, JSON.stringify(deployment(1)));
    const update = await startUpdate(app, stack);
    const refused = await rename(stack, { newName: 'prod' });
    expect([refused.status, refused.json.code]).toEqual([409, 409]);
    expect((await getStack(app, stack)).version).toBe(1);
    await ok(complete(app, update));
    await startUpdate(app, stack, { kind: 'preview' });
    await ok(rename(stack, { newName: 'prod' }));
  });
});

test('a preview goes on under the names that its stack has and had', async () => {
  const stack = await createStack(app);
  const preview = await startUpdate(app, stack, { kind: 'preview' });
  const other = await startUpdate(app, stack, { kind: 'preview' });
  await ok(rename(stack, { newName: 'prod' }));
  const following = { body: { stackName: stack.stack }, auth: stack.auth };
  await ok(app.call('POST', `/api/stacks/${stack.organization}/${stack.project}`, following));
  const renew = (path: string) =>
    app.call('POST', `${path}/renew_lease`, { auth: preview.lease, body: { token: '', duration: 300 } });
  await ok(renew(preview.path));
  await ok(renew(`${moved(stack, stack.project, 'prod').path}/update/${preview.id}`));
  expect((await renew(`${moved(stack, stack.project, 'never').path}/update/${preview.id}`)).status).toBe(403);
  expect((await renew(other.path)).status).toBe(403);
  const events = [{ sequence: 0, timestamp: 1, cancelEvent: {} }];
  await ok(app.call('POST', `${preview.path}/events/batch`, { auth: preview.lease, body: { events } }));
  await ok(complete(app, preview));
  await ok(complete(app, preview));
  expect((await renew(preview.path)).status).toBe(403);
});

test('a large state is renamed by a worker', async () => {
  const stack = await createStack(app);
  const filler = 'x'.repeat(9 * 1024 * 1024);
  const large = (at: TestStack) => document(at).replace('"big":', `"filler":"${filler}","big":`);
  await load(stack, large(stack));
  const run = jest.spyOn(app.context.dispatcher, 'run');
  await ok(rename(stack, { newName: 'prod' }));
  expect(run.mock.calls.map(([job]) => job.name)).toEqual(['rename-stack']);
  run.mockRestore();
  const next = moved(stack, 'proj', 'prod');
  const kept = `"text":"urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev"`;
  const wanted = large(next).replace('"text":"urn:pulumi:prod::proj::pulumi:pulumi:Stack::proj-prod"', kept);
  expect((await exportState(app, next)).text === wanted).toBe(true);
});

test('links with a former name lead on, whatever stacks that the caller may not read have or had that name', async () => {
  const stack = await createStack(app);
  const { auth, organization } = stack;
  await ok(rename(stack, { newName: 'shown' }));
  const reader = await person(app, organization, 'viewer');
  const denied = ['dev', 'hidden*'];
  for (const name of denied)
    await grant(app, reader.organizationId, { userId: reader.userId }, 'deny', ['read', 'outputs'], {
      stacks: `proj/${name}`,
    });
  const find = async (by: string) =>
    (await ask(app, by.replace('token ', ''), 'stacks.renamed', { organization, project: 'proj', stack: 'dev' })).data;
  const shown = { project: 'proj', stack: 'shown' };
  expect([await find(reader.auth), await find(auth)]).toEqual([shown, shown]);
  // Many others had it later.
  await query(
    app,
    `with added as (
       insert into stacks (project_id, name) select s.project_id, 'hidden' || n
         from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id, generate_series(1, 50) n
       where o.name = $1 and s.name = 'shown' returning id)
     insert into former_stack_names (organization_id, project_name, stack_name, stack_id)
     select o.id, 'proj', 'dev', added.id from added, organizations o where o.name = $1`,
    [organization],
  );
  expect(await find(reader.auth)).toEqual(shown);
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: 'dev' } }));
  expect([await find(reader.auth), await find(auth)]).toEqual([shown, null]);
});

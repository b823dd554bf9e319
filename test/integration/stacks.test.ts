import { describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/api/platform/http/request.ts';
import { StackService } from '../../src/api/stacks/stack-service.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { testTrail } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel, complete, saveState } from '../support/update-calls.ts';

const app = testApp({ settings: { HOLDFAST_ORGANIZATION_CREATION: 'anyone' } });

let organizations = 0;
const newOrganization = () => `made-${++organizations}`;
const post = (auth: string, organization: string, body: object | string, project = 'proj') =>
  app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body });

describe('create', () => {
  test('returns the new stack at version 0', async () => {
    const organization = newOrganization();
    const auth = `token ${await app.createUser(organization, 'member')}`;
    const created = await ok(post(auth, organization, { stackName: 'dev', tags: { 'pulumi:project': 'proj' } }));
    expect(created.json).toEqual({
      id: `${organization}/proj/dev`,
      orgName: organization,
      projectName: 'proj',
      stackName: 'dev',
      tags: { 'pulumi:project': 'proj' },
      version: 0,
      messages: [],
    });
    const { json } = await ok(app.call('GET', `/api/stacks/${organization}/proj/dev`, { auth }));
    expect(json).toMatchObject({ tags: { 'pulumi:project': 'proj' }, version: 0, activeUpdate: '' });
    expect(json).not.toHaveProperty('config');
    expect(json).not.toHaveProperty('currentOperation');
  });

  test('a new organization has its creator as admin', async () => {
    const auth = `token ${await app.createUser('home', 'viewer')}`;
    const organization = newOrganization();
    await ok(post(auth, organization, { stackName: 'dev' }));
    expect((await app.call('DELETE', `/api/stacks/${organization}/proj/dev`, { auth })).status).toBe(204);
    const { json } = await ok(app.call('GET', '/api/user', { auth }));
    expect(json.organizations.map((one: { name: string }) => one.name)).toContain(organization);
  });

  test('only site admins create organizations, unless the setting says otherwise', async () => {
    await using strict = await createTestApp();
    const auth = `token ${await strict.createUser('home', 'admin', 'operator')}`;
    const make = () => strict.call('POST', '/api/stacks/made/proj', { auth, body: { stackName: 'dev' } });
    const refused = await make();
    expect([refused.status, refused.json.code]).toEqual([404, 404]);
    expect(await query(strict, `select 1 from organizations where name = 'made'`)).toEqual([]);
    await ok(strict.call('POST', '/api/stacks/home/proj', { auth, body: { stackName: 'dev' } }));
    await query(strict, `update users set site_admin = true where login = 'operator'`);
    expect((await make()).status).toBe(200);
  });

  test('a second stack of the same name returns 409 with the text that the CLI searches for', async () => {
    const { auth, organization, stack } = await createStack(app);
    const again = await post(auth, organization, { stackName: stack });
    expect(again.status).toBe(409);
    expect(again.json).toEqual({ code: 409, message: expect.stringContaining('already exists') });
  });

  test('the given state is exported byte for byte', async () => {
    const { auth, organization } = await createStack(app);
    const state =
      '{"version":3, "deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"secrets_providers":{"type":"passphrase","state":{"n":1.0,"salt":"v1:\\u003c"}}}}';
    await ok(post(auth, organization, `{"stackName":"made","state":${state},"tags":{}}`));
    const exported = await ok(app.call('GET', `/api/stacks/${organization}/proj/made/export`, { auth }));
    expect(exported.text).toBe(state);
  });

  test('a state that is not a deployment is rejected, and no stack is created', async () => {
    const { auth, organization } = await createStack(app);
    for (const state of [{}, { version: 9, deployment: {} }, { version: 3 }, { version: 0, deployment: {} }])
      expect((await post(auth, organization, { stackName: 'made', state })).status).toBe(400);
    expect((await app.call('GET', `/api/stacks/${organization}/proj/made`, { auth })).status).toBe(404);
  });

  test('names are checked as the CLI checks them', async () => {
    const { auth, organization } = await createStack(app);
    for (const stackName of ['', '.', '..', 'a b', 'a/b', 'é', 'x'.repeat(101)])
      expect({ stackName, status: (await post(auth, organization, { stackName })).status }).toEqual({
        stackName,
        status: 400,
      });
    for (const stackName of ['x'.repeat(100), 'A_b-c.d', '__proto__', '0', '...'])
      expect({ stackName, status: (await post(auth, organization, { stackName })).status }).toEqual({
        stackName,
        status: 200,
      });
    for (const [owner, project] of [
      ['-bad', 'proj'],
      ['x'.repeat(41), 'proj'],
      ['bad_', 'proj'],
      [organization, 'a%20b'],
      [organization, 'x'.repeat(101)],
    ] as const)
      expect((await post(auth, owner, { stackName: 'dev' }, project)).status).toBe(400);
  });

  test('no organization gets the name of a path that the server uses; one that has it goes on', async () => {
    const { auth, organization } = await createStack(app);
    for (const name of ['api', 'Metrics', 'sign-in']) {
      const refused = await post(auth, name, { stackName: 'dev' });
      expect([refused.status, refused.json.message]).toEqual([400, `Organization name "${name}" is reserved`]);
      expect(await query(app, `select 1 from organizations where name = $1`, [name])).toEqual([]);
    }
    await ok(post(auth, 'admin', { stackName: 'dev' }));
    await query(app, `update organizations set name = 'metrics' where name = $1`, [organization]);
    await ok(post(auth, 'metrics', { stackName: 'more' }));
  });
});

describe('delete', () => {
  test('returns 204 without resources, then 404', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 0));
    await ok(complete(app, update));
    const remove = () => app.call('DELETE', `${stack.path}?force=false`, { auth: stack.auth });
    const first = await remove();
    expect([first.status, first.text]).toEqual([204, '']);
    for (const response of [await remove(), await app.call('GET', stack.path, { auth: stack.auth })])
      expect([response.status, response.json.code]).toEqual([404, 404]);
  });

  test('with resources: returns 400 with the exact text that the CLI searches for, unless forced', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    const kept = await app.call('DELETE', `${stack.path}?force=false`, { auth: stack.auth });
    expect(kept.status).toBe(400);
    expect(kept.text).toBe('{"code":400,"message":"Bad Request: Stack still contains resources."}');
    expect((await app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth })).status).toBe(204);
  });

  test('returns 409 while an update is created or runs, forced or not', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    const refused = await app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth });
    expect([refused.status, refused.json.code]).toEqual([409, 409]);
    const { activeUpdate } = await getStack(app, stack);
    await ok(cancel(app, stack, { path: `${stack.path}/update/${activeUpdate}` }));
    const update = await startUpdate(app, stack);
    expect((await app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth })).status).toBe(409);
    await ok(complete(app, update));
    expect((await app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth })).status).toBe(204);
  });

  test('leaves no row of the stack in any table after the sweep', async () => {
    const stack = await createStack(app);
    const { auth, path } = stack;
    const [{ id: stackId } = { id: '' }] = await query<{ id: string }>(
      app,
      `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
       where o.name = $1`,
      [stack.organization],
    );
    await ok(app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: 'QQ==' } }));
    await ok(app.call('POST', `${path}/import`, { auth, ...gzipped(deployment(2)) }));
    const update = await startUpdate(app, stack, { journal: true });
    await ok(
      app.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        body: { events: [{ sequence: 0, timestamp: 1, stdoutEvent: { message: 'x', color: '' } }] },
      }),
    );
    await ok(complete(app, update));
    await ok(app.call('POST', `${path}/rename`, { auth, body: { newName: 'moved' } }));
    const updates = await query<{ id: string }>(app, 'select id from updates where stack_id = $1', [stackId]);
    expect(updates).toHaveLength(3);
    await ok(app.call('DELETE', `/api/stacks/${stack.organization}/proj/moved?force=true`, { auth }));
    const deletion = createStackDeletion(app.context, { pauseMs: 0, runMs: 600_000 });
    await until(async () => {
      await deletion();
      return (await query(app, 'select 1 from stacks where id = $1', [stackId])).length === 0;
    }, 'the stack is gone');
    for (const table of ['updates', 'checkpoints', 'former_stack_names', 'encryption_keys'])
      expect(await query(app, `select 1 from ${table} where stack_id = $1`, [stackId])).toEqual([]);
    for (const table of ['engine_events', 'journal_entries'])
      expect(
        await query(app, `select 1 from ${table} where update_id = any($1)`, [updates.map(({ id }) => id)]),
      ).toEqual([]);
  });

  test('a new stack of the same name starts empty', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    await ok(post(stack.auth, stack.organization, { stackName: stack.stack }));
    expect((await getStack(app, stack)).version).toBe(0);
    expect((await exportState(app, stack)).text).toBe('{"version":3,"deployment":{"resources":null}}');
    expect((await app.call('GET', update.path, { auth: stack.auth })).status).toBe(404);
  });
});

test('get shows the running operation', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { kind: 'refresh' });
  expect(await getStack(app, stack)).toMatchObject({
    activeUpdate: update.id,
    currentOperation: { kind: 'refresh', author: expect.any(String), started: expect.any(Number) },
  });
  await ok(complete(app, update));
  expect(await getStack(app, stack)).toMatchObject({ activeUpdate: '', version: 1 });
});

test('the author of an operation by a token without a user is the token', async () => {
  const stack = await createStack(app);
  const url = `/api/orgs/${stack.organization}/tokens`;
  const { json } = await ok(app.call('POST', url, { auth: stack.auth, body: { name: 'pipeline', description: '' } }));
  await startUpdate(app, { ...stack, auth: `token ${json.tokenValue}` });
  expect((await getStack(app, stack)).currentOperation.author).toBe('organization:pipeline');
});

test('a stack requires no policy packs', async () => {
  const stack = await createStack(app);
  const answer = await ok(app.call('GET', `${stack.path}/policypacks`, { auth: stack.auth }));
  expect(answer.json).toEqual({ requiredPolicies: [] });
});

describe('an organization that was deleted while its stack was being created', () => {
  const create = async (organization: string, who: object) => {
    const service = new StackService(app.context, async () => {});
    const caller = { facts: null, policyId: null, isScoped: false, siteAdmin: false, ...who } as unknown as Caller;
    const ref = { organization, project: 'web', stack: 'dev' };
    return service.create(caller, { ref, tags: {}, teams: [], state: null }, testTrail('stack.create'));
  };
  const exists = async (organization: string) =>
    (await query(app, 'select 1 from organizations where name = $1', [organization])).length > 0;

  test('is not created again by a member', async () => {
    const { organization, path, auth } = await createStack(app);
    await ok(app.call('DELETE', path, { auth }));
    const [member] = await query(
      app,
      `select t.id as "tokenId", m.user_id as "userId" from memberships m join organizations o on o.id = m.organization_id
       join api_tokens t on t.user_id = m.user_id where o.name = $1`,
      [organization],
    );
    await query(
      app,
      'delete from stacks where project_id in (select p.id from projects p join organizations o on o.id = p.organization_id where o.name = $1)',
      [organization],
    );
    await query(app, 'delete from organizations where name = $1', [organization]);
    await expect(create(organization, { belongs: true, role: 'member', ...member })).rejects.toMatchObject({
      status: 404,
    });
    expect(await exists(organization)).toBe(false);
  });

  test('is not created by a token that was revoked meanwhile', async () => {
    await app.createUser('somewhere', 'member', 'revoked-founder');
    const [founder] = await query(
      app,
      `update api_tokens t set revoked_at = now() from users u where u.id = t.user_id and u.login = 'revoked-founder'
       returning t.id as "tokenId", t.user_id as "userId"`,
    );
    await expect(create('founded', { belongs: false, role: null, ...founder })).rejects.toMatchObject({ status: 401 });
    expect(await exists('founded')).toBe(false);
  });
});

test('many stacks at once of an organization that the first of them founds, or of several, are created', async () => {
  const auth = `token ${await app.createUser('somewhere', 'member', 'busy-founder')}`;
  const calls = Array.from({ length: 24 }, (_, at) =>
    app.call('POST', `/api/stacks/${at < 16 ? 'busy-first' : `busy-${at}`}/web`, {
      auth,
      body: { stackName: `s${at}` },
    }),
  );
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200));
});

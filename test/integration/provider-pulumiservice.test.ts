import { expect, test } from '@jest/globals';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

/**
 * The calls of Pulumi's own provider `pulumiservice`, in its order and with its bodies (provider/pkg/pulumiapi of
 * pulumi/pulumi-pulumiservice), for what this server has: stacks, tags, teams, their stacks, tokens, webhooks and issuers.
 */

const app = testApp();

async function scene() {
  const stack = await createStack(app);
  const { auth, organization, path, project, stack: name } = stack;
  const call = async (method: string, to: string, body?: object) => {
    const headers = { 'x-pulumi-source': 'provider' };
    const response = await ok(app.call(method, to, { auth, ...(body ? { body } : {}), headers }));
    return response.text === '' ? null : response.json;
  };
  return { auth, call, organization, orgs: `/api/orgs/${organization}`, path, project, stack: name };
}

test('Stack, StackTag and StackTags are created, read, changed and deleted', async () => {
  const { call, organization } = await scene();
  const projectPath = `/api/stacks/${organization}/made`;
  const path = `${projectPath}/by-provider`;
  await call('POST', projectPath, { stackName: 'by-provider' });
  await call('POST', `${path}/tags`, { name: 'team:owner', value: 'ada' });
  await call('POST', `${path}/tags`, { name: 'tier', value: '1' });
  await call('POST', `${path}/tags`, { name: 'tier', value: '2' });
  expect((await call('GET', path)).tags).toMatchObject({ 'team:owner': 'ada', tier: '2' });
  await call('DELETE', `${path}/tags/${encodeURIComponent('team:owner')}`);
  // Again, after a response that did not arrive.
  await call('DELETE', `${path}/tags/${encodeURIComponent('team:owner')}`);
  expect((await call('GET', path)).tags).not.toHaveProperty('team:owner');
  await call('POST', `${path}/import`, {
    version: 3,
    deployment: {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      resources: [{ urn: 'urn:pulumi:by-provider::made::a:b:C::c', custom: true, id: 'c', type: 'a:b:C' }],
    },
  });
  await expect(call('DELETE', path)).rejects.toThrow(/resources/);
  await call('DELETE', `${path}?forceDestroy=true`);
});

test('tags of a provider obey the rules for tags', async () => {
  const { auth, call, path } = await scene();
  for (const body of [
    { name: 'a b', value: 'c' },
    { name: 'a'.repeat(41), value: 'c' },
    { name: 'a', value: 'c'.repeat(257) },
    { name: 'a' },
  ])
    expect((await app.call('POST', `${path}/tags`, { auth, body })).status).toBe(400);
  for (let at = 0; at < 200; at++) await call('POST', `${path}/tags`, { name: `t${at}`, value: 'v' });
  expect((await app.call('POST', `${path}/tags`, { auth, body: { name: 'more', value: 'v' } })).status).toBe(400);
  await call('DELETE', `${path}/tags/t0`);
  await call('POST', `${path}/tags`, { name: 'more', value: 'v' });
});

test('Team, TeamStackPermission and the tokens are created, read, changed and deleted', async () => {
  const { call, organization, orgs, project, stack } = await scene();
  const login = (await call('GET', '/api/user')).githubLogin;
  const team = { organization, teamType: 'pulumi', name: 'blue', displayName: 'Blue', description: 'd' };
  await call('POST', `${orgs}/teams/pulumi`, team);
  await call('PATCH', `${orgs}/teams/blue`, { newDisplayName: 'Bluer', newDescription: '' });
  await call('PATCH', `${orgs}/teams/blue`, { memberAction: 'add', member: login });
  for (const permission of [101, 103])
    await call('PATCH', `${orgs}/teams/blue`, {
      addStackPermission: { projectName: project, stackName: stack, permission },
    });
  expect(await call('GET', `${orgs}/teams/blue`)).toMatchObject({
    kind: 'pulumi',
    displayName: 'Bluer',
    members: [{ githubLogin: login }],
    stacks: [{ projectName: project, stackName: stack, permission: 103 }],
  });
  await call('PATCH', `${orgs}/teams/blue`, { removeStack: { projectName: project, stackName: stack } });
  expect((await call('GET', `${orgs}/teams/blue`)).stacks).toEqual([]);
  // After a replacement, the provider removes a permission that it has replaced.
  await call('PATCH', `${orgs}/teams/blue`, { removeStack: { projectName: project, stackName: stack } });
  for (const [path, body] of [
    ['/api/user/tokens', { description: 'of a user' }],
    [`${orgs}/tokens`, { name: 'ci', description: 'of an organization', admin: false }],
    [`${orgs}/teams/blue/tokens`, { name: 'team-ci', description: 'of a team' }],
  ] as const) {
    const { id, tokenValue } = await call('POST', path, body);
    expect(tokenValue).toMatch(/^hf-/);
    expect((await call('GET', path)).tokens).toContainEqual(expect.objectContaining({ id, ...body }));
    await call('DELETE', `${path}/${id}`);
    expect((await call('GET', path)).tokens).not.toContainEqual(expect.objectContaining({ id }));
  }
  await call('PATCH', `${orgs}/teams/blue`, { memberAction: 'remove', member: login });
  await call('DELETE', `${orgs}/teams/blue`);
});

test.each(['organization', 'stack'])('a Webhook of the %s is created, read, changed and deleted', async (of) => {
  const { call, organization, orgs, path, project, stack } = await scene();
  const hooks = `${of === 'stack' ? path : orgs}/hooks`;
  const owner = of === 'stack' ? { projectName: project, stackName: stack } : {};
  const body = {
    organizationName: organization,
    ...owner,
    displayName: 'Deployments',
    payloadUrl: 'https://hooks.example.com/a',
    secret: 'hunter2',
    active: true,
    format: 'raw',
    filters: ['update_succeeded'],
  };
  const { name } = await call('POST', hooks, body);
  expect(await call('PATCH', `${hooks}/${name}`, { ...body, name, active: false })).toMatchObject({ active: false });
  const {
    secret: _,
    organizationName: _organization,
    projectName: _project,
    stackName: _stack,
    ...shown
  } = body as typeof body & {
    projectName?: string;
    stackName?: string;
  };
  expect(await call('GET', `${hooks}/${name}`)).toMatchObject({ ...shown, name, active: false, hasSecret: true });
  expect(await call('GET', hooks)).toMatchObject([{ name }]);
  await call('DELETE', `${hooks}/${name}`);
  expect(await call('GET', hooks)).toEqual([]);
});

test('an OidcIssuer and its policies are created, read, changed and deleted', async () => {
  const { auth, call, orgs } = await scene();
  const issuers = `${orgs}/oidc/issuers`;
  const { id } = await call('POST', issuers, { name: 'github', url: 'https://token.actions.githubusercontent.com' });
  await call('PATCH', `${issuers}/${id}`, { name: 'GitHub', maxExpiration: 3600 });
  expect(await call('GET', `${issuers}/${id}`)).toMatchObject({ id, name: 'GitHub', maxExpiration: 3600 });
  const policy = await call('GET', `${orgs}/auth/policies/oidcissuers/${id}`);
  const definition = {
    decision: 'allow',
    tokenType: 'organization',
    authorizedPermissions: [],
    rules: { aud: 'urn:pulumi:org:acme', sub: 'repo:acme/web:*' },
  };
  const changed = await call('PATCH', `${orgs}/auth/policies/${policy.id}`, { policies: [definition] });
  expect(changed).toMatchObject({ id: policy.id, policies: [{ decision: 'allow', tokenType: 'organization' }] });
  expect((await call('GET', `${orgs}/auth/policies/oidcissuers/${id}`)).version).toBeGreaterThan(policy.version);
  await call('DELETE', `${issuers}/${id}`);
  expect((await app.call('GET', `${issuers}/${id}`, { auth })).status).toBe(404);
});

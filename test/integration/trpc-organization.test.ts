import { beforeAll, expect, jest, test } from '@jest/globals';
import { type Person, person, team } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

jest.setTimeout(120_000);

const app = testApp();
let stack: TestStack;
let token: string;
let member: Person;
const get = async (name: string, input: object = {}) => {
  const { data, error } = await ask(app, token, `organization.${name}`, { organization: stack.organization, ...input });
  expect(error).toBeNull();
  return data;
};

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
  member = await person(app, stack.organization, 'member');
});

test('an organization is shown with its members and teams', async () => {
  await team(app, member.organizationId, 'blue', [member.userId]);
  const { items, next } = await get('members');
  expect(next).toBeNull();
  expect(items).toHaveLength(2);
  expect(items).toContainEqual(
    expect.objectContaining({ login: member.login, role: 'member', since: expect.stringMatching(/Z$/) }),
  );
  expect((await get('teams')).items).toEqual([
    { name: 'blue', displayName: 'blue', description: '', members: [{ login: member.login, isAdmin: false }] },
  ]);
  const refused = await ask(app, token, 'organization.members', {
    organization: stack.organization,
    cursor: Buffer.from('a b').toString('base64url'),
  });
  expect(refused).toMatchObject({ status: 400, error: { code: 'BAD_REQUEST' } });
});

test('tokens are shown without their secrets', async () => {
  const path = `/api/orgs/${stack.organization}`;
  const made = await ok(app.call('POST', `${path}/tokens`, { auth: stack.auth, body: { name: 'ci', admin: true } }));
  const tokens = await get('tokens');
  expect(tokens.items).toMatchObject([
    { id: made.json.id, kind: 'organization', name: 'ci', role: 'admin', expiresAt: null },
  ]);
  expect(JSON.stringify(tokens)).not.toContain(made.json.tokenValue);
});

test('the audit log is shown page by page and by action', async () => {
  for (let at = 0; at < 3; at++)
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { at: String(at) } }));
  const { items, next } = await get('audit', { action: 'stack.tags' });
  expect(next).toBeNull();
  expect(items).toHaveLength(3);
  expect(items[0]).toMatchObject({
    action: 'stack.tags',
    outcome: 'done',
    object: `${stack.organization}/proj/dev`,
    signIn: 'token',
  });
  expect((await get('audit', { user: 'nobody-here' })).items).toEqual([]);
  const refused = await ask(app, token, 'organization.audit', { organization: stack.organization, until: 'yesterday' });
  expect(refused).toMatchObject({ status: 400 });
});

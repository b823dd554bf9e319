import { beforeAll, expect, jest, test } from '@jest/globals';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { setRule } from '../support/update-rules.ts';

jest.setTimeout(120_000);

const app = testApp();
let stack: TestStack;
let token: string;
const get = async (name: string, input: object = {}) => {
  const { data, error } = await ask(app, token, `organization.${name}`, { organization: stack.organization, ...input });
  expect(error).toBeNull();
  return data;
};

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
});

test('webhooks are shown without their secrets', async () => {
  const path = `/api/orgs/${stack.organization}`;
  const hook = {
    name: 'hook',
    displayName: 'Hook',
    payloadUrl: 'https://hooks.example.com/x',
    secret: 'very-secret-word',
  };
  await ok(app.call('POST', `${path}/hooks`, { auth: stack.auth, body: hook }));
  const webhooks = await get('webhooks');
  expect(webhooks.items).toMatchObject([
    { name: 'hook', url: 'https://hooks.example.com/x', isActive: true, hasSecret: true },
  ]);
  expect(JSON.stringify(webhooks)).not.toMatch(/very-secret|sealed/);
  expect(await get('deliveries', { webhook: 'hook' })).toEqual({ items: [], next: null });
  const missing = await ask(app, token, 'organization.deliveries', {
    organization: stack.organization,
    webhook: 'none',
  });
  expect(missing).toMatchObject({ status: 404 });
});

test('rules and approvals are shown', async () => {
  const settings = { until: '2099-01-01T00:00:00Z' };
  const id = await setRule(app, stack, { kind: 'freeze', tag: { name: 'zone', value: 'eu' }, settings, note: 'Sale' });
  expect((await get('rules')).items).toMatchObject([
    {
      id,
      kind: 'freeze',
      project: null,
      tag: { name: 'zone', value: 'eu' },
      settings,
      note: 'Sale',
      setAt: expect.stringMatching(/Z$/),
    },
  ]);
  const body = { commit: 'a'.repeat(40), reason: 'replaces the database' };
  await ok(app.call('POST', `${stack.path}/approvals`, { auth: stack.auth, body }));
  const { items } = await get('approvals', { project: 'proj', stack: 'dev' });
  expect(items).toMatchObject([
    { commit: 'a'.repeat(40), request: 'replaces the database', approvedAt: null, isValid: false },
  ]);
});

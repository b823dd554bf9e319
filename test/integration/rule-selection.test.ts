import { beforeEach, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { grant, type Person, person } from '../support/grants.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });
const preview = { kind: 'require-preview', settings: { mode: 'refuse' } };
const freeze = { kind: 'freeze', settings: { windows: [{ cron: '0 0 1 1 *', minutes: 1, timeZone: 'UTC' }] } };
const limit = { kind: 'concurrency', settings: { most: 1 } };
const changeLimit = { kind: 'change-limit', settings: { changes: 0 }, note: 'ask #platform' };
const manager = ['read', 'write', 'manage'] as const;

let stack: TestStack;
let member: Person;

beforeEach(async () => {
  stack = await createStack(app);
  member = await person(app, stack.organization, 'member');
});

const at = (name = 'dev', project = 'proj') => `/api/stacks/${stack.organization}/${project}/${name}`;
const rename = (body: object, { auth } = member as { readonly auth: string }, path = at()) =>
  app.call('POST', `${path}/rename`, { auth, body });
const update = (auth: string, path: string) => app.call('POST', `${path}/update`, { auth, body: {} });

describe('without the permission manage, a rename', () => {
  test('does not lead out of a rule, which the refusal names, and the rule still holds', async () => {
    await setRule(app, stack, { ...preview, project: 'proj', stack: 'dev', note: 'see the merge job' });
    const refused = await rename({ newName: 'live' });
    expect(refused.status).toBe(403);
    expect(refused.json.message).toBe(
      `This would change which rules stack ${stack.organization}/proj/dev has: require-preview of stack proj/dev (see the merge job). That needs the permission manage on the stack: ask an admin of the organization to do it`,
    );
    expect((await update(member.auth, at())).status).toBe(403);
    expect((await update(member.auth, at('live'))).status).toBe(404);
  });

  test.each([
    ['of the project', { project: 'proj' }, { newProject: 'other' }],
    ['of the stack', { project: 'proj', stack: 'dev' }, { newName: 'live' }],
    ['of the new project', { project: 'other' }, { newProject: 'other' }],
    ['of the new name', { project: 'proj', stack: 'live' }, { newName: 'live' }],
    ['of the tag that names the project', { tag: { name: 'pulumi:project', value: 'proj' } }, { newProject: 'other' }],
  ])('changes nothing about rules %s', async (_, scope, body) => {
    await ok(app.call('PATCH', `${at()}/tags`, { auth: stack.auth, body: { 'pulumi:project': 'proj' } }));
    for (const rule of [preview, freeze, limit, changeLimit]) {
      const id = await setRule(app, stack, { ...rule, ...scope });
      const { json, status } = await rename(body);
      expect({ status, message: json.message }).toEqual({
        status: 403,
        message: expect.stringContaining(`${rule.kind} of`),
      });
      await removeRule(app, stack, id);
    }
    await ok(rename(body));
  });

  test('is allowed where the same rules hold, and with the permission', async () => {
    await setRule(app, stack, { ...preview, project: 'proj' });
    await setRule(app, stack, { ...limit });
    await ok(rename({ newName: 'dev-2' }));
    expect((await rename({ newProject: 'other' }, member, at('dev-2'))).status).toBe(403);
    await grant(app, member.organizationId, { userId: member.userId }, 'allow', manager);
    await ok(rename({ newProject: 'other' }, member, at('dev-2')));
    await ok(update(member.auth, at('dev-2', 'other')));
  });

  test('changes nothing about the grants of others', async () => {
    const other = await person(app, stack.organization, 'member');
    const id = { userId: other.userId };
    await grant(app, other.organizationId, id, 'deny', ['decrypt'], { stacks: 'proj/dev*' });
    const { json, status } = await rename({ newName: 'live' });
    expect({ status, message: json.message }).toEqual({
      status: 403,
      message: expect.stringContaining('which grants apply'),
    });
    await ok(rename({ newName: 'dev-2' }));
    await ok(rename({ newName: 'live' }, stack, at('dev-2')));
  });

  test('is refused by the commit, too, if the rule is set after the call has begun', async () => {
    const { stateEdits } = app.context;
    const admit = stateEdits.admit.bind(stateEdits);
    stateEdits.admit = async (head) => {
      await setRule(app, stack, { ...preview, project: 'proj', stack: 'dev' });
      return admit(head);
    };
    try {
      const { json, status } = await rename({ newName: 'live' });
      expect({ status, message: json.message }).toEqual({
        status: 403,
        message: expect.stringContaining('require-preview of'),
      });
    } finally {
      stateEdits.admit = admit;
    }
    await ok(app.call('GET', at(), { auth: member.auth }));
  });
});

describe('a stack that is deleted and created again', () => {
  const create = (auth: string, tags: object) =>
    app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth, body: { stackName: 'dev', tags } });

  test('keeps the tags by which rules and grants select it, unless it may be managed', async () => {
    await grant(app, member.organizationId, { userId: member.userId }, 'allow', ['admin']);
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['manage']);
    await ok(app.call('PATCH', `${at()}/tags`, { auth: stack.auth, body: { env: 'prod', team: 'a' } }));
    const rule = await setRule(app, stack, { ...preview, tag: { name: 'env', value: 'prod' } });
    await ok(app.call('DELETE', `${at()}?force=true`, { auth: member.auth }));
    const refused = await create(member.auth, { env: 'dev' });
    expect({ status: refused.status, message: refused.json.message }).toEqual({
      ...{ status: 403, message: expect.stringContaining('require-preview of stacks with the tag env=prod') },
    });
    await ok(create(member.auth, { env: 'prod', team: 'b' }));
    await ok(app.call('DELETE', `${at()}?force=true`, { auth: member.auth }));
    await removeRule(app, stack, rule);
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], { tag: ['env', 'prod'] });
    expect((await create(member.auth, {})).json.message).toContain('which grants apply');
    await ok(create(stack.auth, {}));
  });

  test('stays in its policy groups', async () => {
    const groups = new PolicyCalls(app, stack);
    await ok(groups.call('POST', 'policygroups', { name: 'strict' }));
    await ok(groups.call('PATCH', 'policygroups/strict', { addStack: { name: 'dev', routingProject: 'proj' } }));
    const stacks = async () => (await ok(groups.call('GET', 'policygroups/strict'))).json.stacks;
    for (const auth of [stack.auth, member.auth]) {
      await ok(app.call('DELETE', `${at()}?force=true`, { auth: stack.auth }));
      expect(await stacks()).toEqual([]);
      await ok(create(auth, {}));
      expect(await stacks()).toEqual([{ name: 'dev', routingProject: 'proj' }]);
    }
    await ok(groups.call('PATCH', 'policygroups/strict', { removeStack: { name: 'dev', routingProject: 'proj' } }));
    await ok(app.call('DELETE', `${at()}?force=true`, { auth: stack.auth }));
    await ok(create(member.auth, {}));
    expect(await stacks()).toEqual([]);
  });

  test('keeps them if a rename gives its name to another stack', async () => {
    const groups = new PolicyCalls(app, stack);
    await ok(groups.call('POST', 'policygroups', { name: 'strict' }));
    await ok(groups.call('PATCH', 'policygroups/strict', { addStack: { name: 'dev', routingProject: 'proj' } }));
    await ok(app.call('PATCH', `${at()}/tags`, { auth: stack.auth, body: { env: 'prod' } }));
    await setRule(app, stack, { ...preview, tag: { name: 'env', value: 'prod' } });
    const createTemporary = (name: string, tags: object) =>
      ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { ...member, body: { stackName: name, tags } }));
    await createTemporary('one', {});
    await createTemporary('two', { env: 'prod' });
    await ok(app.call('DELETE', `${at()}?force=true`, { auth: stack.auth }));
    const refused = await rename({ newName: 'dev' }, member, at('one'));
    expect({ status: refused.status, message: refused.json.message }).toEqual({
      ...{ status: 403, message: expect.stringContaining('require-preview of stacks with the tag env=prod') },
    });
    expect(refused.json.message).toContain('/proj/dev has');
    await ok(rename({ newName: 'dev' }, member, at('two')));
    const { stacks } = (await ok(groups.call('GET', 'policygroups/strict'))).json;
    expect(stacks).toEqual([{ name: 'dev', routingProject: 'proj' }]);
  });

  test('is a new one once it cannot be restored', async () => {
    await ok(app.call('PATCH', `${at()}/tags`, { auth: stack.auth, body: { env: 'prod' } }));
    await setRule(app, stack, { ...preview, tag: { name: 'env', value: 'prod' } });
    await ok(app.call('DELETE', `${at()}?force=true`, { auth: stack.auth }));
    expect((await create(member.auth, {})).status).toBe(403);
    await query(
      app,
      `update stacks set restorable_until = now() - interval '1 second' where restorable_until is not null`,
      [],
    );
    await ok(create(member.auth, {}));
  });
});

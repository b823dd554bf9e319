import { beforeAll, expect, test } from '@jest/globals';
import { listEvents, type StoredEvent } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { grant, person, team } from '../support/grants.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();
let stack: TestStack;
let path: string;
let organizationId: string;

beforeAll(async () => {
  stack = await createStack(app);
  path = `/api/orgs/${stack.organization}`;
  ({ organizationId } = await person(app, stack.organization, 'viewer'));
});

/** What `work` records in the stack's organization. */
async function recorded(work: () => Promise<void>): Promise<StoredEvent[]> {
  const before = await listEvents(app, stack.organization);
  await work();
  return (await listEvents(app, stack.organization)).slice(before.length);
}
const shown = (events: readonly StoredEvent[]) =>
  events.map(({ action, object, details }) => [action, object, details]);
const call = (method: string, url: string, body?: object, auth = stack.auth) =>
  app.call(method, url, { auth, ...(body ? { body } : {}) });
const token = async (url: string, body: object) => {
  const { json } = await ok(call('POST', url, body));
  return { id: json.id as string, secret: json.tokenValue as string, auth: `token ${json.tokenValue}` };
};

test('tokens are recorded where they are valid, without their secrets', async () => {
  const secrets: string[] = [];
  const ids: string[] = [];
  const events = await recorded(async () => {
    for (const [url, body] of [
      ['/api/user/tokens', { name: 'own' }],
      [`${path}/tokens`, { name: 'robot', admin: true }],
    ] as const) {
      const { id, secret } = await token(url, body);
      const rotated = await ok(call('POST', `${url}/${id}/rotate`, { overlapSeconds: 60 }));
      await ok(call('DELETE', `${url}/${id}`));
      expect((await call('DELETE', `${url}/${id}`)).status).toBe(404);
      ids.push(id);
      secrets.push(secret, rotated.json.tokenValue);
    }
  });
  expect(shown(events)).toEqual([
    ['token.create', ids[1], { kind: 'organization', role: 'admin', name: 'robot', scopes: null }],
    ['token.rotate', ids[1], { overlapSeconds: 60 }],
    ['token.revoke', ids[1], {}],
  ]);
  const personal = (await listEvents(app, '')).filter(({ object }) => object === ids[0]);
  expect(shown(personal)).toEqual([
    ['token.create', ids[0], { kind: 'personal', name: 'own', scopes: null }],
    ['token.rotate', ids[0], { overlapSeconds: 60 }],
    ['token.revoke', ids[0], {}],
  ]);
  for (const secret of secrets) expect(JSON.stringify([events, personal])).not.toContain(secret);
});

test('members who get another role or are removed, and teams that may update a new stack, are recorded', async () => {
  const { login } = await person(app, stack.organization, 'member');
  await team(app, organizationId, 'blue', []);
  const events = await recorded(async () => {
    for (const role of ['viewer', 'viewer']) await ok(call('PATCH', `${path}/members/${login}`, { role }));
    await ok(call('DELETE', `${path}/members/${login}`));
    await ok(call('POST', `/api/stacks/${stack.organization}/proj`, { stackName: 'shared', teams: ['blue'] }));
  });
  expect(shown(events)).toMatchObject([
    ['member.role', login, { from: 'member', to: 'viewer' }],
    ['member.remove', login, { role: 'viewer' }],
    ['grant.add', `${stack.organization}/proj/shared`, { team: 'blue', permissions: ['write', 'decrypt'] }],
    ['stack.create', `${stack.organization}/proj/shared`, {}],
  ]);
});

test('changes of policy packs and groups are recorded, without configuration', async () => {
  const calls = new PolicyCalls(app, stack);
  const object = (name: string) => `${stack.organization}/${name}`;
  const events = await recorded(async () => {
    await calls.publish();
    await ok(calls.complete());
    await ok(calls.call('POST', 'policygroups', { name: 'group' }));
    await ok(calls.enable({ name: 'pack', config: { all: 'mandatory' } }, 'group'));
    await ok(calls.call('PATCH', 'policygroups/group', { stacks: [{ name: 'dev', routingProject: 'proj' }] }));
    await ok(calls.disable({ name: 'pack', versionTag: '1.0.0' }, 'group'));
    await ok(calls.call('DELETE', 'policygroups/group'));
    await ok(calls.call('DELETE', 'policypacks/pack'));
  });
  expect(shown(events)).toEqual([
    ['policy-pack.begin', object('pack'), { version: 1, versionTag: '1.0.0' }],
    ['policy-pack.publish', object('pack'), { version: 1, versionTag: '1.0.0' }],
    ['policy-group.create', object('group'), {}],
    ['policy-group.change', object('group'), { addPolicyPack: 'pack@any' }],
    ['policy-group.change', object('group'), { stacks: ['proj/dev'] }],
    ['policy-group.change', object('group'), { removePolicyPack: 'pack@1.0.0' }],
    ['policy-group.remove', object('group'), {}],
    ['policy-pack.remove', object('pack'), { versionTag: 'all' }],
  ]);
});

test('who acts with a token that belongs to no user, and by what, is recorded with each event of an update', async () => {
  const owners = [
    { url: 'tokens', body: { name: 'bot' }, login: 'organization:bot', role: 'member', by: 'token' },
    { url: 'tokens', body: { name: 'svc', service: true }, login: 'service:svc', role: '', by: 'token' },
    { url: 'teams/red/tokens', body: { name: 'ci' }, login: 'team:red/ci', role: '', by: 'team:red' },
  ];
  const red = await team(app, organizationId, 'red', []);
  await grant(app, organizationId, { teamId: red }, 'allow', ['write', 'decrypt']);
  const { ciphertext } = (await ok(call('POST', `${stack.path}/encrypt`, { plaintext: 'QQ==' }))).json;
  for (const { url, body, login, role, by } of owners) {
    const { auth, id } = await token(`${path}/${url}`, body);
    if (body.service) await grant(app, organizationId, { tokenId: id }, 'allow', ['write', 'decrypt']);
    const events = await recorded(async () => {
      const update = await startUpdate(app, { ...stack, auth });
      await ok(call('POST', `${stack.path}/decrypt`, { ciphertext }, auth));
      await ok(complete(app, update));
    });
    const kind = login.split(':')[0];
    expect(events.map(({ action, sign_in }) => [action, sign_in])).toEqual([
      ['update.create', `${kind}-token`],
      ['update.start', `${kind}-token`],
      ['secret.decrypt', `${kind}-token`],
      ['update.end', 'lease'],
    ]);
    for (const event of events)
      expect(event).toMatchObject({ login, role, granted_by: by, token_id: id, token_name: body.name, user_id: null });
    expect(events[2]).toMatchObject({ update_id: events[3]?.['update_id'], details: { calls: 1, values: 1 } });
  }
});

test('a permission by a grant beyond the role is recorded as granted', async () => {
  const viewer = await person(app, stack.organization, 'viewer');
  const retag = () => call('PATCH', `${stack.path}/tags`, {}, viewer.auth);
  const refused = await recorded(async () => void expect((await retag()).status).toBe(403));
  expect(refused).toMatchObject([{ action: 'stack.tags', outcome: 'refused', login: viewer.login }]);
  await grant(app, organizationId, { userId: viewer.userId }, 'allow', ['write']);
  const done = await recorded(async () => {
    await ok(retag());
    await ok(call('GET', `${stack.path}/export`, undefined, viewer.auth));
  });
  expect(done.map(({ action, granted_by, role }) => [action, granted_by, role])).toEqual([
    ['stack.tags', 'grants', 'viewer'],
    ['stack.export', '', 'viewer'],
  ]);
});

test('nothing is changed whose event is refused', async () => {
  const { login } = await person(app, stack.organization, 'member');
  const bot = await token(`${path}/tokens`, { name: 'kept' });
  const facts = () =>
    query(
      app,
      `select (select json_agg(t order by t.id) from (select id, token_hash::text, revoked_at from api_tokens) t) as tokens,
         (select json_agg(m order by user_id) from memberships m) as members, (select count(*) from grants) as grants,
         (select count(*) from policy_groups) as groups, (select count(*) from policy_pack_versions) as versions`,
    );
  const before = await facts();
  await query(
    app,
    `create function refuse_events() returns trigger language plpgsql as $$ begin raise exception 'full'; end $$`,
  );
  await query(app, 'create trigger refuse before insert on audit_events for each row execute function refuse_events()');
  try {
    const answers = await Promise.all([
      call('POST', '/api/user/tokens', { name: 'new' }),
      call('POST', `${path}/tokens/${bot.id}/rotate`, {}),
      call('DELETE', `${path}/tokens/${bot.id}`),
      call('PATCH', `${path}/members/${login}`, { role: 'viewer' }),
      call('DELETE', `${path}/members/${login}`),
      call('POST', `/api/stacks/${stack.organization}/proj`, { stackName: 'unrecorded', teams: ['blue'] }),
      call('POST', `${path}/policygroups`, { name: 'unrecorded' }),
      call('DELETE', `${path}/policygroups/unrecorded`),
      new PolicyCalls(app, stack).begin({ name: 'unrecorded' }),
    ]);
    expect(answers.filter(({ status }) => status < 500).map(({ status }) => status)).toEqual([404]);
  } finally {
    await query(app, 'drop function refuse_events cascade');
  }
  expect(await facts()).toEqual(before);
});

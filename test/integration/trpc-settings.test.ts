import { beforeAll, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();
let stack: TestStack;
let organization: string;
let admin: Person;
let member: Person;

async function read(procedure: string, input: object = {}, by = admin.token) {
  const { data, error } = await ask(app, by, procedure, { organization, ...input });
  expect([procedure, error]).toEqual([procedure, null]);
  return data;
}

async function change(procedure: string, input: object = {}, by = admin.token) {
  const { data, error } = await command(app, by, procedure, { organization, ...input });
  expect([procedure, error]).toEqual([procedure, null]);
  return data;
}

const refuse = (procedure: string, input: object, by = admin.token) =>
  command(app, by, procedure, { organization, ...input });

async function lastEvent(action: string) {
  return (await read('audit.list', { action, limit: 1 })).items[0];
}

const stackInput = () => ({ organization, project: stack.project, stack: stack.stack });
const statusOf = async (token: string) => (await app.call('GET', '/api/user', { auth: `token ${token}` })).status;

beforeAll(async () => {
  stack = await createStack(app);
  ({ organization } = stack);
  admin = await person(app, organization, 'admin');
  member = await person(app, organization, 'member');
});

describe('a rule is changed in its place', () => {
  const path = () => `/api/orgs/${organization}/update-rules`;

  test('a freeze gets other times, another reason and other stacks, and keeps its id', async () => {
    const until = '2099-01-01T00:00:00Z';
    const first = { kind: 'freeze', tag: { name: 'env', value: 'prod' }, settings: { until }, note: 'Sale' };
    const { id } = await change('rules.set', first);
    const other = await change('rules.set', { ...first, note: 'Clearance' });
    const windows = [{ cron: '0 17 * * 5', timeZone: 'UTC', minutes: 60 }];
    const changed = await change('rules.change', {
      ...{ ruleId: id, kind: 'freeze', project: 'proj', settings: { windows, mode: 'wait' }, note: 'Weekends' },
    });
    expect(changed).toMatchObject({ id, scope: 'project proj', tag: null, note: 'Weekends', setBy: admin.login });
    expect(changed.settings).toEqual({ windows, mode: 'wait' });
    const { items } = await read('rules.list', { kinds: ['freeze'] });
    expect(items.map((rule: { id: string }) => rule.id).sort()).toEqual([id, other.id].sort());
    expect((await lastEvent('update-rule.set')).details).toMatchObject({
      ...{ id, kind: 'freeze', note: 'Weekends' },
      from: { scope: 'stacks with the tag env=prod', settings: { until }, note: 'Sale' },
    });
    const body = { kind: 'freeze', settings: {}, note: 'By REST' };
    const { json } = await ok(app.call('PUT', `${path()}/${id}`, { auth: stack.auth, body }));
    expect(json).toMatchObject({ id, note: 'By REST', settings: {} });
    expect(json).not.toHaveProperty('project');
  });

  test('with invalid, mismatched or taken values is refused and changes nothing', async () => {
    const { id } = await change('rules.set', { kind: 'lock-wait', project: 'proj', settings: { seconds: 5 } });
    await change('rules.set', { kind: 'lock-wait', settings: { seconds: 7 } });
    const tries: [object, number, RegExp][] = [
      [{ kind: 'lock-wait', project: 'proj', settings: { seconds: -1 } }, 400, /not valid/],
      [{ kind: 'freeze', project: 'proj', settings: {} }, 400, /of kind lock-wait/],
      [{ kind: 'lock-wait', stack: 'dev', settings: { seconds: 1 } }, 400, /needs its project/],
      [{ kind: 'lock-wait', settings: { seconds: 1 } }, 409, /another rule lock-wait for organization/],
    ];
    for (const [rule, status, message] of tries) {
      const seen = await refuse('rules.change', { ruleId: id, ...rule });
      expect([seen.status, seen.error?.message]).toEqual([status, expect.stringMatching(message)]);
      expect((await app.call('PUT', `${path()}/${id}`, { auth: stack.auth, body: rule })).status).toBe(status);
    }
    const missing = { ruleId: '00000000-0000-4000-8000-000000000000', kind: 'freeze', settings: {} };
    expect((await refuse('rules.change', missing)).status).toBe(404);
    const { json } = await ok(app.call('GET', `${path()}/${id}`, { auth: stack.auth }));
    expect(json).toMatchObject({ project: 'proj', settings: { seconds: 5 } });
    const elsewhere = await createStack(app);
    const body = { kind: 'lock-wait', settings: { seconds: 1 } };
    const theirs = `/api/orgs/${elsewhere.organization}/update-rules/${id}`;
    expect((await app.call('PUT', theirs, { auth: elsewhere.auth, body })).status).toBe(404);
  });
});

test('an approval can be withdrawn by its requester and by admins of the stack only', async () => {
  const commit = (letter: string) => letter.repeat(40);
  const asking = (letter: string, by = member.token) =>
    change('approvals.ask', { ...stackInput(), commit: commit(letter) }, by) as Promise<{ id: string }>;
  const other = await person(app, organization, 'member');
  const { id } = await asking('a');
  const mine = async (by: string) => (await read('approvals.ofStack', stackInput(), by)).items[0].mayWithdraw;
  expect([await mine(member.token), await mine(other.token), await mine(admin.token)]).toEqual([true, false, true]);
  expect(await refuse('approvals.withdraw', { ...stackInput(), approvalId: id }, other.token)).toMatchObject({
    ...{ status: 403, error: { message: expect.stringContaining('Only the requester') } },
  });
  expect(await lastEvent('approval.withdraw')).toMatchObject({ outcome: 'refused', actor: other.login });
  await change('approvals.withdraw', { ...stackInput(), approvalId: id }, member.token);
  expect(await lastEvent('approval.withdraw')).toMatchObject({
    ...{ outcome: 'done', actor: member.login },
    details: { approvalId: id, commit: commit('a'), askedBy: member.login, approvedBy: null },
  });
  expect((await refuse('approvals.withdraw', { ...stackInput(), approvalId: id }, member.token)).status).toBe(404);

  const given = await asking('b');
  await change('approvals.give', { ...stackInput(), approvalId: given.id, reason: 'seen' });
  const path = `${stack.path}/approvals/${given.id}`;
  expect((await app.call('DELETE', path, { auth: other.auth })).status).toBe(403);
  expect((await app.call('DELETE', path, { auth: admin.auth })).status).toBe(204);
  expect((await read('approvals.ofStack', stackInput())).items).toEqual([]);
  const details = (await lastEvent('approval.withdraw')).details;
  expect(details).toMatchObject({ approvalId: given.id, approvedBy: admin.login });
});

describe('tokens', () => {
  test('get another value; the one before ends at once or stays for a time', async () => {
    const made = await change('tokens.createMine', { name: 'laptop' });
    const rotated = await change('tokens.rotateMine', { id: made.id, overlapSeconds: 3_600 });
    expect(rotated.id).toBe(made.id);
    expect(Date.parse(rotated.previousUntil)).toBeGreaterThan(Date.now() + 3_000_000);
    expect([await statusOf(made.value), await statusOf(rotated.value)]).toEqual([200, 200]);
    const [listed] = (await read('tokens.mine')).items;
    expect(listed).toMatchObject({ id: made.id, mayRotate: true, previousUntil: rotated.previousUntil });
    expect(JSON.stringify(listed)).not.toContain(rotated.value);
    const last = await change('tokens.rotateMine', { id: made.id, overlapSeconds: 0 });
    expect([await statusOf(rotated.value), await statusOf(last.value)]).toEqual([401, 200]);
    const [event] = await query<{ details: string }>(
      app,
      `select details from audit_events where action = 'token.rotate' and object = $1 order by number desc limit 1`,
      [made.id],
    );
    expect(JSON.parse(event?.details ?? '')).toEqual({ overlapSeconds: 0 });
    // What people do with their accounts is in the log of the server.
    expect(await lastEvent('token.rotate')).toBeUndefined();
    const tooLong = await refuse('tokens.rotateMine', { id: made.id, overlapSeconds: 2_592_001 });
    expect(tooLong.status).toBe(400);
  });

  test('of teams and organizations are rotated by their admins, and by nobody through another place', async () => {
    const { organizationId } = admin;
    await team(app, organizationId, 'green', []);
    const ofTeam = await change('tokens.createOfTeam', { team: 'green', name: 'ci of green' });
    const own = await change('tokens.create', { name: 'ci', power: 'member' });
    const now = { overlapSeconds: 0 };
    expect((await refuse('tokens.rotate', { id: ofTeam.id, ...now })).status).toBe(404);
    expect((await refuse('tokens.rotateMine', { id: own.id, ...now })).status).toBe(404);
    expect((await refuse('tokens.rotateOfTeam', { team: 'green', id: ofTeam.id, ...now }, member.token)).status).toBe(
      403,
    );
    const again = await change('tokens.rotateOfTeam', { team: 'green', id: ofTeam.id, ...now });
    expect([await statusOf(ofTeam.value), await statusOf(again.value)]).toEqual([401, 200]);
    expect(await statusOf((await change('tokens.rotate', { id: own.id, ...now })).value)).toBe(200);
  });

  test('without an end, end with the longest lifetime of the organizations, which is announced before', async () => {
    const { organizationId } = admin;
    for (const life of ['tokens.lifeOfMine', 'tokens.life']) expect(await read(life)).toEqual({ maxSeconds: null });
    await query(app, 'update organization_access set max_token_seconds = 864000 where organization_id = $1', [
      organizationId,
    ]);
    for (const [life, input] of [
      ['tokens.lifeOfMine', {}],
      ['tokens.life', {}],
      ['tokens.lifeOfTeam', { team: 'green' }],
    ] as const)
      expect(await read(life, input)).toEqual({ maxSeconds: 864_000 });
    const { expiresAt } = await change('tokens.createMine', { name: 'endless' });
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 864_000_000)).toBeLessThan(600_000);
    await query(app, 'update organization_access set max_token_seconds = null where organization_id = $1', [
      organizationId,
    ]);
  });
});

test('what roles give is changed by procedures and REST alike, one after the other or both at once', async () => {
  const path = `/api/orgs/${organization}/access-policy`;
  const all = { decryptByRole: true, defaultPermissions: null };
  const rest = async () => (await ok(app.call('GET', path, { auth: stack.auth }))).json;
  const policy = async () => {
    const { revision: _revision, ...shown } = await read('access.policy');
    return shown;
  };
  expect([await policy(), await rest()]).toEqual([all, all]);
  const may = async () =>
    (await read('stacks.get', stackInput(), member.token)).permissions.filter((name: string) => name !== 'outputs');
  expect(await may()).toEqual(['read', 'preview', 'write', 'decrypt']);
  await change('access.changePolicy', { defaultPermissions: ['write'] });
  const written = { decryptByRole: false, defaultPermissions: ['read', 'preview', 'write'] };
  expect([await policy(), await rest()]).toEqual([written, written]);
  expect(await may()).toEqual(['read', 'preview', 'write']);
  expect(await lastEvent('grant.defaults')).toMatchObject({
    details: { defaultPermissions: ['read', 'preview', 'write'] },
  });
  const patch = (body: object) => app.call('PATCH', path, { auth: stack.auth, body });
  expect((await patch({ defaultPermissions: ['read'], decryptByRole: true })).status).toBe(204);
  expect(await rest()).toEqual({ decryptByRole: true, defaultPermissions: ['read', 'decrypt'] });
  for (const body of [{}, { defaultPermissions: ['outputs'] }, { defaultPermissions: ['fly'] }])
    expect((await patch(body)).status).toBe(400);
  expect((await patch({ defaultPermissions: [] })).status).toBe(204);
  expect((await ask(app, member.token, 'stacks.get', stackInput())).status).toBe(404);
  expect(await policy()).toEqual({ decryptByRole: false, defaultPermissions: [] });
  // All that a member has is no limit.
  expect((await patch({ defaultPermissions: ['write', 'decrypt'] })).status).toBe(204);
  expect(await policy()).toEqual(all);
});

test('tags are suggested by their beginnings, of stacks that one may read', async () => {
  const tags = { env: 'prod', 'env:tier': 'one', owner: 'blue' };
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: tags }));
  const path = `/api/stacks/${organization}/other`;
  for (const [name, env] of [
    ['a', 'dev'],
    ['b', 'prod'],
    ['c', 'preview'],
  ] as const)
    await ok(
      app.call('POST', path, { auth: stack.auth, body: { stackName: name, tags: { env, team: `team-${name}` } } }),
    );
  const tagsOf = async (input: object, by?: string) => (await read('stacks.tags', input, by)).items;
  expect(await tagsOf({ text: 'env' })).toEqual(['env', 'env:tier']);
  expect(await tagsOf({ name: 'env' })).toEqual(['dev', 'preview', 'prod']);
  expect(await tagsOf({ name: 'env', text: 'pr' })).toEqual(['preview', 'prod']);
  expect(await tagsOf({ name: 'env', limit: 1 })).toEqual(['dev']);
  expect(await tagsOf({ name: 'none' })).toEqual([]);
  const half = await person(app, organization, 'viewer');
  await grant(app, half.organizationId, { userId: half.userId }, 'deny', ['read'], { stacks: 'other/*' });
  expect(await tagsOf({ name: 'env' }, half.token)).toEqual(['prod']);
  expect(await tagsOf({ text: 'te' }, half.token)).toEqual([]);
});

test('what a team needs next is listed for admins after the first update, as far as they can do it', async () => {
  const fresh = await createStack(app);
  const owner = await person(app, fresh.organization, 'admin');
  const list = async (by = owner.token) =>
    (await read('setup.list', { organization: fresh.organization }, by)).items.map(
      ({ isDone, step }: { step: string; isDone: boolean }) => `${step} ${isDone}`,
    );
  expect(await list()).toEqual([]);
  await ok(complete(app, await startUpdate(app, fresh), 'failed'));
  expect(await list()).toEqual([]);
  await ok(complete(app, await startUpdate(app, fresh)));
  // There are two admins.
  expect(await list()).toEqual(['people true', 'trust false', 'rules false']);
  await query(app, 'delete from memberships where organization_id = $1 and user_id <> $2', [
    ...[owner.organizationId, owner.userId],
  ]);
  expect(await list()).toEqual(['people false', 'trust false', 'rules false']);
  const within = { organization: fresh.organization };
  const made = await change('issuers.create', { ...within, name: 'ci', url: 'https://ci.example.com' }, owner.token);
  expect(await list()).toEqual(['people false', 'trust false', 'rules false']);
  await query(
    app,
    `insert into trust_policies (issuer_id, position, decision, token_kind, rules) values ($1, 1, 'allow', 'organization', $2)`,
    [made.id, { sub: ['repo:acme/*'] }],
  );
  await change('rules.set', { ...within, kind: 'lock-wait', settings: { seconds: 1 } }, owner.token);
  await change('members.invite', { ...within, login: 'somebody', role: 'viewer' }, owner.token);
  expect(await list()).toEqual(['people true', 'trust true', 'rules true']);
  await query(app, 'update users set site_admin = true where id = $1', [owner.userId]);
  expect((await list()).slice(3)).toEqual(['provider false', 'backups false']);
});

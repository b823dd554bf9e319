import { beforeAll, describe, expect, test } from '@jest/globals';
import { browserOf } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { ask, askFrom, command, resultOf } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let stack: TestStack;
let organization: string;
let organizationId: string;
let token: string;
let admin: Person;
let member: Person;

/** What a query of an admin answers. */
async function read(procedure: string, input: object = {}, by = token) {
  const { data, error } = await ask(app, by, procedure, { organization, ...input });
  expect([procedure, error]).toEqual([procedure, null]);
  return data;
}

/** What a change by an admin answers. */
async function change(procedure: string, input: object = {}, by = token) {
  const { data, error } = await command(app, by, procedure, { organization, ...input });
  expect([procedure, error]).toEqual([procedure, null]);
  return data;
}

const refuse = (procedure: string, input: object, by = token) =>
  command(app, by, procedure, { organization, ...input });

/** All items of a list, a few at a time. */
async function readAll(procedure: string, input: object, limit: number) {
  // biome-ignore lint/suspicious/noExplicitAny: items of every shape.
  const all: any[] = [];
  let pages = 0;
  for (let cursor: string | null = null; pages === 0 || cursor !== null; pages++) {
    const page: { items: unknown[]; next: string | null } = await read(procedure, { ...input, limit, cursor });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    all.push(...page.items);
    cursor = page.next;
  }
  return all;
}

/** Token of an admin who adds members, although there are several organizations. */
async function siteAdmin(): Promise<string> {
  const root = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [root.userId]);
  return root.token;
}

/** Actions and objects of the audit log, newest first. */
async function recorded(count: number): Promise<string[]> {
  const { items } = await read('audit.list', { limit: count });
  return items.map(({ action, object }: { action: string; object: string }) => `${action} ${object}`);
}

beforeAll(async () => {
  stack = await createStack(app);
  ({ organization } = stack);
  admin = await person(app, organization, 'admin');
  ({ organizationId, token } = admin);
  member = await person(app, organization, 'member');
});

describe('members', () => {
  test('are listed page by page, and found by name and role', async () => {
    const { login } = await person(app, organization, 'viewer');
    const all = await readAll('members.list', {}, 1);
    expect(all.map((each) => each.login)).toEqual(all.map((each) => each.login).sort());
    expect(new Set(all.map((each) => each.login)).size).toBe(all.length);
    expect(all.find((each) => each.login === login)).toMatchObject({
      role: 'viewer',
      isActive: true,
      teams: [],
      since: expect.stringMatching(/Z$/),
    });
    expect(await read('members.list', { text: login.slice(2).toUpperCase() })).toMatchObject({ items: [{ login }] });
    expect((await read('members.list', { role: 'viewer' })).items.map((each: Person) => each.login)).toContain(login);
    expect((await read('members.list', { text: '%' })).items).toEqual([]);
    const wrong = await ask(app, token, 'members.list', { organization, cursor: 'nonsense' });
    expect(wrong).toMatchObject({ status: 400, error: { code: 'BAD_REQUEST' } });
  });

  test('are added, get another role and are removed, with an event each', async () => {
    const { login, token: theirs } = await person(app, `${organization}-other`, 'member');
    expect((await ask(app, theirs, 'members.list', { organization })).status).toBe(404);
    const root = await siteAdmin();
    await change('members.add', { login, role: 'viewer' }, root);
    await change('members.add', { login, role: 'viewer' }, root);
    expect((await ask(app, theirs, 'members.list', { organization })).error).toBeNull();
    expect(await refuse('members.add', { login, role: 'admin' }, root)).toMatchObject({ status: 409 });
    await change('members.setRole', { login, role: 'member' });
    // Another admin has seen the role of before.
    expect(await refuse('members.setRole', { login, role: 'admin', seen: 'viewer' })).toMatchObject({
      status: 409,
      error: { kind: 'edit-conflict', message: expect.stringContaining(`the role of ${login}`) },
    });
    await change('members.setRole', { login, role: 'viewer', seen: 'member' });
    await change('members.setRole', { login, role: 'viewer', seen: 'member' });
    await change('members.remove', { login });
    expect((await ask(app, theirs, 'members.list', { organization })).status).toBe(404);
    expect(await recorded(4)).toEqual([
      ...[`member.remove ${login}`, `member.role ${login}`],
      ...[`member.role ${login}`, `member.add ${login}`],
    ]);
  });

  test('need an existing active user and an admin; the last admin stays', async () => {
    const root = await siteAdmin();
    expect(await refuse('members.add', { login: 'no-such-user', role: 'member' }, root)).toMatchObject({ status: 404 });
    const gone = await person(app, `${organization}-other`, 'member');
    await query(app, 'update users set deactivated_at = now() where id = $1', [gone.userId]);
    expect(await refuse('members.add', { login: gone.login, role: 'member' }, root)).toMatchObject({ status: 400 });
    expect(await refuse('members.add', { login: gone.login, role: 'member' }, member.token)).toMatchObject({
      status: 403,
    });
    const { items } = await read('audit.list', { action: 'member.add', outcome: 'refused' });
    expect(items).toMatchObject([{ actor: member.login, outcome: 'refused' }]);
    const alone = await person(app, `${organization}-alone`, 'admin');
    const last = { organization: `${organization}-alone`, login: alone.login };
    for (const [procedure, input] of [
      ['members.remove', last],
      ['members.setRole', { ...last, role: 'viewer' }],
    ] as const)
      expect(await refuse(procedure, input, alone.token)).toMatchObject({
        status: 409,
        error: { message: expect.stringContaining('last admin') },
      });
  });
});

describe('teams', () => {
  test('are made, described, filled and deleted; their admins do a part of it', async () => {
    await change('teams.create', { name: 'red', displayName: 'Red', description: 'Network' });
    expect(await refuse('teams.create', { name: 'red' })).toMatchObject({ status: 409 });
    await change('teams.setMember', { team: 'red', login: member.login });
    expect(await refuse('teams.edit', { team: 'red', displayName: 'x', description: '' }, member.token)).toMatchObject({
      status: 403,
    });
    await change('teams.setMember', { team: 'red', login: member.login, isAdmin: true });
    expect(await read('teams.get', { team: 'red' }, member.token)).toEqual({
      revision: expect.any(String),
      name: 'red',
      displayName: 'Red',
      description: 'Network',
      members: 1,
      isIn: true,
      isAdmin: true,
      isManaged: false,
    });
    await change('teams.edit', { team: 'red', displayName: 'Reds', description: '' }, member.token);
    await change('teams.setMember', { team: 'red', login: admin.login }, member.token);
    expect(await readAll('teams.members', { team: 'red' }, 1)).toHaveLength(2);
    await change('teams.removeMember', { team: 'red', login: admin.login }, member.token);
    expect(await read('teams.list', { text: 'REDS' })).toMatchObject({ items: [{ name: 'red', members: 1 }] });
    expect(await refuse('teams.delete', { team: 'red' }, member.token)).toMatchObject({ status: 403 });
    await change('teams.delete', { team: 'red' });
    expect((await ask(app, token, 'teams.get', { organization, team: 'red' })).status).toBe(404);
  });

  test('are listed page by page', async () => {
    for (const name of ['a-1', 'a-2', 'a-3']) await team(app, organizationId, name, []);
    const names = (await readAll('teams.list', { text: 'a-' }, 2)).map(({ name }) => name);
    expect(names).toEqual(['a-1', 'a-2', 'a-3']);
  });
});

test('roles are made, changed and deleted, with the grants that give them', async () => {
  const { items } = await read('roles.list');
  expect(items.slice(0, 3)).toMatchObject([
    { id: 'viewer', isBuiltIn: true, permissions: ['read', 'decrypt'] },
    { id: 'member' },
    { id: 'admin' },
  ]);
  const { id } = await change('roles.create', { name: 'deployer', description: '', permissions: ['write'] });
  const changed = { id, name: 'deployer', description: 'By hand', permissions: ['read'] };
  expect(await change('roles.edit', changed)).toMatchObject({ permissions: ['read'], description: 'By hand' });
  await change('grants.give', { user: member.login, effect: 'allow', role: id, stacks: 'proj/*' });
  expect(await read('roles.countGrants', { id })).toEqual({ grants: 1 });
  expect(await refuse('roles.delete', { id, force: false })).toMatchObject({ status: 409 });
  await change('roles.delete', { id, force: true });
  expect((await read('grants.list', { user: member.login })).items).toEqual([]);
  expect(await refuse('roles.edit', { ...changed, id: 'viewer' })).toMatchObject({ status: 409 });
});

test('grants are given and taken, and listed by whom and where they hold', async () => {
  const viewer = await person(app, organization, 'viewer');
  const given = await change('grants.give', {
    user: viewer.login,
    effect: 'allow',
    permissions: ['write'],
    stacks: 'proj/d*',
  });
  const elsewhere = await grant(app, organizationId, { userId: viewer.userId }, 'deny', ['read'], { stacks: 'x/*' });
  const tagged = await grant(app, organizationId, { userId: viewer.userId }, 'deny', ['decrypt'], {
    tag: ['zone', 'eu'],
  });
  const other = await grant(app, organizationId, { userId: viewer.userId }, 'deny', ['read'], { tag: ['area', 'eu'] });
  const ids = async (input: object) => (await readAll('grants.list', input, 1)).map(({ id }) => id);
  expect(await ids({ user: viewer.login })).toEqual([given.id, elsewhere, tagged, other]);
  const on = { project: stack.project, stack: stack.stack };
  expect(await ids({ on })).toEqual([given.id]);
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { zone: 'eu' } }));
  expect(await ids({ on })).toEqual([given.id, tagged]);
  expect((await ask(app, token, 'grants.list', { organization, on: { ...on, stack: 'none' } })).status).toBe(404);

  const of = { project: stack.project, stack: stack.stack };
  const mine = await read('access.mine', of, viewer.token);
  expect(mine.holder.permissions).toEqual(['read', 'preview', 'write', 'outputs']);
  expect(mine.grants.map(({ id }: { id: string }) => id).sort()).toEqual([given.id, tagged].sort());
  const browser = await browserOf(app, viewer.login);
  const bySession = await askFrom(browser, 'access.mine', { organization, ...of });
  expect(bySession.data.holder.permissions).toEqual(mine.holder.permissions);
  const all = await readAll('access.list', { ...of, holders: 'users' }, 2);
  expect(all.find(({ user }) => user.githubLogin === viewer.login).permissions).toEqual(mine.holder.permissions);

  await change('grants.take', { id: given.id });
  expect(await ids({ user: viewer.login })).toEqual([elsewhere, tagged, other]);
  expect(await refuse('grants.take', { id: given.id })).toMatchObject({ status: 404 });
});

describe('tokens', () => {
  const works = async (value: string) => (await ask(app, value, 'me.get')).status;

  test('of an organization are made, listed page by page without their values, and revoked', async () => {
    const made = [];
    for (const name of ['ci-1', 'ci-2', 'ci-3'])
      made.push(await change('tokens.create', { name, power: 'member', description: name }));
    expect(await works(made[0].value)).toBe(200);
    const tokens = await readAll('tokens.list', {}, 2);
    expect(tokens.map(({ name }) => name)).toEqual(['ci-3', 'ci-2', 'ci-1']);
    expect(JSON.stringify(tokens)).not.toContain(made[0].value);
    await change('tokens.revoke', { id: made[0].id });
    expect(await works(made[0].value)).toBe(401);
    expect((await read('tokens.list')).items).toHaveLength(2);
    expect(await recorded(1)).toEqual([`token.revoke ${made[0].id}`]);
    const service = await change('tokens.create', {
      name: 'reader',
      power: 'service',
      scopes: [{ permissions: ['outputs'], stacks: 'proj/*' }],
    });
    expect((await read('tokens.list')).items[0]).toMatchObject({
      id: service.id,
      kind: 'service',
      isCiToken: false,
      scopes: [{ permissions: ['outputs'], stacks: 'proj/*' }],
    });
  });

  test('of a team are for its admins, and those of a person for that person', async () => {
    const id = await team(app, organizationId, 'green', [member.userId]);
    expect(await refuse('tokens.createOfTeam', { team: 'green', name: 'ci' }, member.token)).toMatchObject({
      status: 403,
    });
    await query(app, 'update team_members set is_admin = true where team_id = $1', [id]);
    const made = await change('tokens.createOfTeam', { team: 'green', name: 'ci' }, member.token);
    expect((await read('tokens.ofTeam', { team: 'green' }, member.token)).items).toMatchObject([{ id: made.id }]);
    await change('tokens.revokeOfTeam', { team: 'green', id: made.id }, member.token);
    expect(await works(made.value)).toBe(401);

    const browser = await browserOf(app, member.login);
    const post = async (name: string, input: object) => resultOf(await browser.postJson(`/trpc/${name}`, input));
    const own = (await post('tokens.createMine', { description: 'laptop' })).data;
    expect(await works(own.value)).toBe(200);
    const mine = (await askFrom(browser, 'tokens.mine')).data.items;
    expect(mine.map((each: { id: string }) => each.id)).toContain(own.id);
    expect(await command(app, token, 'tokens.revokeMine', { id: own.id })).toMatchObject({ status: 404 });
    expect((await post('tokens.revokeMine', { id: own.id })).error).toBeNull();
    expect(await works(own.value)).toBe(401);
  });
});

test('issuers are trusted, get policies, and are removed; a concurrent change of another user is not overwritten', async () => {
  const url = `https://ci.example.com/${organization}`;
  const { id } = await change('issuers.create', { name: 'ci', url, maxSeconds: 600 });
  const policy = {
    decision: 'allow',
    tokenType: 'organization',
    rules: [{ claim: 'sub', patterns: ['repo:acme/*'] }],
  };
  const { version } = await read('issuers.get', { id });
  const set = await change('issuers.setPolicies', { id, version, policies: [policy] });
  expect(set.policies).toMatchObject([{ ...policy, owner: null, isAdmin: false, scopes: null }]);
  expect(await refuse('issuers.setPolicies', { id, version, policies: [] })).toMatchObject({ status: 409 });
  expect(
    (await refuse('issuers.setPolicies', { id, version: set.version, policies: [{ ...policy, rules: [] }] })).status,
  ).toBe(400);
  expect(await read('issuers.get', { id })).toMatchObject({ policies: [{ rules: policy.rules }] });
  await change('issuers.edit', { id, audience: 'holdfast', maxSeconds: null });
  await change('issuers.create', { name: 'other', url: `${url}/x` });
  expect(await readAll('issuers.list', {}, 1)).toMatchObject([
    { name: 'ci', url, audience: 'holdfast', maxSeconds: null, policies: 1 },
    { name: 'other', policies: 0 },
  ]);
  await change('issuers.delete', { id });
  expect((await ask(app, token, 'issuers.get', { organization, id })).status).toBe(404);
  expect((await recorded(1))[0]).toBe('issuer.remove ci');
});

describe('the audit log', () => {
  test('is shown page by page, and found by action, actor, object, outcome and time', async () => {
    for (let at = 0; at < 3; at++)
      await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { at: String(at) } }));
    const first = await readAll('audit.list', { action: 'stack.tags' }, 2);
    expect(first.length).toBeGreaterThanOrEqual(3);
    expect(first[0]).toMatchObject({
      description: 'Replaced the tags of a stack',
      outcome: 'done',
      object: `${organization}/proj/dev`,
      signIn: 'token',
      isPerson: true,
    });
    const tagsOnly = { action: 'stack.tags', object: 'PROJ/dev' };
    expect((await readAll('audit.list', tagsOnly, 2)).map(({ number }) => number)).toEqual(
      first.map(({ number }) => number),
    );
    expect(await readAll('audit.list', { ...tagsOnly, outcome: 'refused' }, 2)).toEqual([]);
    expect((await read('audit.list', { actor: 'nobody-here' })).items).toEqual([]);
    expect((await read('audit.list', { actor: 'server:', action: 'stack.tags' })).items).toEqual([]);
    const { at } = first[1];
    const later = await readAll('audit.list', { action: 'stack.tags', from: at }, 50);
    expect(later.every((event) => event.at >= at)).toBe(true);
    expect(later.length).toBeLessThan(first.length);
    expect((await read('audit.list', { until: '2001-01-01' })).items).toEqual([]);
    const wrong = await ask(app, token, 'audit.list', { organization, from: 'yesterday' });
    expect(wrong).toMatchObject({ status: 400 });
  });

  test('is scanned in parts for values without an index, and none is missed', async () => {
    const count = 5_100;
    await query(
      app,
      `insert into audit_events (organization_id, organization, occurred_at, action, outcome, actor, login, token_name, sign_in, role,
         granted_by, address, user_agent, ci_run, object, request_id, details)
       select $1, '', now() - interval '1 hour' - n * interval '1 second', 'stack.tags', 'done', 'user', 'old', '', 'token', '', '', '', '', '',
         case when n in (1, 5000, ${count}) then 'needle' else 'hay' end, '', '{}' from generate_series(1, ${count}) n`,
      [organizationId],
    );
    const found = await readAll('audit.list', { actor: 'old', object: 'needle' }, 50);
    expect(found).toHaveLength(3);
    const firstPage = await read('audit.list', { actor: 'old', object: 'needle' });
    expect([firstPage.items.length, firstPage.next === null]).toEqual([2, false]);
  });

  test('is exported in parts that are events themselves', async () => {
    const part = await change('audit.export', { format: 'csv', actor: 'old' });
    expect(part.text.split('\r\n')).toHaveLength(2_002);
    expect(part.text).toMatch(/^number,timestamp,/);
    const next = await change('audit.export', { format: 'csv', actor: 'old', cursor: part.next });
    expect(next.text).not.toMatch(/number,timestamp/);
    expect((await recorded(2)).every((line) => line.startsWith('audit.export'))).toBe(true);
  });
});

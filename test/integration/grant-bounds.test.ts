import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { groupSchemas, Provider } from '../support/scim.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

interface Scene {
  readonly owner: TestStack;
  readonly member: Person;
}

async function scene(): Promise<Scene> {
  const owner = await createStack(app);
  return { owner, member: await person(app, owner.organization, 'member') };
}

/** Grants on other stacks than `dev`. */
async function fill({ member }: Scene, column: 'team_id' | 'user_id', id: string, count: number): Promise<void> {
  await query(
    app,
    `insert into grants (organization_id, effect, permissions, ${column}, stack_pattern)
     select $1, 'allow', 1, $2, 'other-' || n from generate_series(1, $3::integer) n`,
    [member.organizationId, id, count],
  );
}

describe('the grants that apply to a user, with the grants of teams,', () => {
  const tooMany = { status: 409, json: { message: expect.stringMatching(/At most 2000 grants .* would have more/) } };

  /** 2,000 grants apply to the member: by themselves, and by teams `one` and `two`. */
  async function full(): Promise<Scene> {
    const of = await scene();
    const { organizationId, userId } = of.member;
    await fill(of, 'user_id', userId, 500);
    await fill(of, 'team_id', await team(app, organizationId, 'one', [userId]), 1000);
    await fill(of, 'team_id', await team(app, organizationId, 'two', [userId]), 500);
    return of;
  }

  test('are at most 2000, whether a grant is added or a user joins a team', async () => {
    const of = await full();
    const { member, owner } = of;
    const other = await person(app, owner.organization, 'member');
    const three = await team(app, member.organizationId, 'three', [other.userId]);
    const call = (method: string, path: string, body?: object) =>
      app.call(method, `/api/orgs/${owner.organization}${path}`, { auth: owner.auth, ...(body ? { body } : {}) });
    const add = (subject: object) => call('POST', '/grants', { effect: 'allow', permissions: ['write'], ...subject });
    const join = (name: string, login: string) =>
      call('PATCH', `/teams/${name}`, { memberAction: 'add', member: login });
    expect(await add({ user: member.login })).toMatchObject(tooMany);
    expect(await add({ team: 'two' })).toMatchObject(tooMany);
    const { project, stack } = { project: owner.path.split('/').at(-2), stack: owner.path.split('/').at(-1) };
    const given = { projectName: project, stackName: stack, permission: 101 };
    expect(await call('PATCH', '/teams/two', { addStackPermission: given })).toMatchObject(tooMany);
    expect(await call('POST', '/teams/two/roles/viewer')).toMatchObject(tooMany);
    const init = await app.call('POST', `/api/stacks/${owner.organization}/proj`, {
      auth: owner.auth,
      body: { stackName: 'for-teams', teams: ['two'] },
    });
    expect(init).toMatchObject(tooMany);
    // A team without grants, and other users.
    await ok(join('three', member.login));
    await ok(call('PATCH', '/teams/three', { memberAction: 'remove', member: member.login }));
    await ok(add({ user: other.login }));
    await grant(app, member.organizationId, { teamId: three }, 'allow', ['write']);
    expect(await join('three', member.login)).toMatchObject(tooMany);
    await ok(join('one', other.login));
    const [row] = await query<{ id: string }>(app, `select id from grants where user_id = $1 limit 1`, [member.userId]);
    await ok(call('DELETE', `/grants/${row?.id}`));
    await ok(join('three', member.login));
  });

  test('are at most 2000 for a SCIM provider, also when a suspended user returns', async () => {
    const of = await scene();
    const by = await Provider.of(app, of.owner.organization);
    const [here, away] = [await by.addUser('here@example.test'), await by.addUser('away@example.test')];
    const setActive = (active: boolean) => by.patch(`Users/${away}`, { op: 'replace', path: 'active', value: active });
    await ok(setActive(false));
    const groups: string[] = [];
    for (const displayName of ['one', 'two', 'three']) {
      const { json } = await ok(by.call('POST', 'Groups', { schemas: groupSchemas, displayName }));
      groups.push(json.id);
      await fill(of, 'team_id', json.id, 700);
    }
    const join = (group: number, user: string) =>
      by.patch(`Groups/${groups[group]}`, { op: 'add', path: 'members', value: [{ value: user }] });
    const message = { status: 409, json: { detail: expect.stringMatching(/At most 2000 grants/) } };
    for (const group of [0, 1]) await ok(join(group, here));
    expect(await join(2, here)).toMatchObject(message);
    for (const group of [0, 1, 2]) await ok(join(group, away));
    expect(await setActive(true)).toMatchObject(message);
    await query(app, 'delete from grants where team_id = $1', [groups[2]]);
    await ok(setActive(true));
  });

  test('of one subject are at most 1000 in all ways of giving them', async () => {
    const of = await scene();
    const { owner, member } = of;
    await fill(of, 'team_id', await team(app, member.organizationId, 'one', []), 1000);
    const path = `/api/orgs/${owner.organization}/teams/one`;
    const given = {
      projectName: owner.path.split('/').at(-2),
      stackName: owner.path.split('/').at(-1),
      permission: 101,
    };
    const message = expect.stringMatching(/at most 1000 grants/);
    const byStack = await app.call('PATCH', path, { auth: owner.auth, body: { addStackPermission: given } });
    expect(byStack).toMatchObject({ status: 409, json: { message } });
    const byRole = await app.call('POST', `${path}/roles/viewer`, { auth: owner.auth });
    expect(byRole).toMatchObject({ status: 409, json: { message } });
  });
});

test('an organization has at most 1000 teams', async () => {
  const { member, owner } = await scene();
  await query(
    app,
    `insert into teams (organization_id, name, display_name, description)
     select $1, 'team-' || n, '', '' from generate_series(1, 1000) n`,
    [member.organizationId],
  );
  const path = `/api/orgs/${owner.organization}/teams`;
  const more = await app.call('POST', `${path}/pulumi`, { auth: owner.auth, body: { name: 'more' } });
  expect(more).toMatchObject({ status: 409, json: { message: expect.stringMatching(/at most 1000 teams/) } });
  await ok(app.call('DELETE', `${path}/team-1`, { auth: owner.auth }));
  await ok(app.call('POST', `${path}/pulumi`, { auth: owner.auth, body: { name: 'more' } }));
});

test('lists of those who hold a permission on a stack do not read grants on other stacks', async () => {
  const of = await scene();
  const { member, owner } = of;
  const teamId = await team(app, member.organizationId, 'one', [member.userId]);
  await fill(of, 'team_id', teamId, 900);
  await fill(of, 'user_id', member.userId, 900);
  await grant(app, member.organizationId, { teamId }, 'allow', ['write']);
  await grant(app, member.organizationId, { userId: member.userId }, 'allow', ['write']);
  const db = app.context.db as unknown as { any: (...args: unknown[]) => Promise<readonly unknown[]> };
  const original = db.any;
  let chars = 0;
  db.any = async (...args) => {
    const rows = await original.apply(db, args);
    chars += JSON.stringify(rows).length;
    return rows;
  };
  try {
    const { auth, path } = owner;
    const teams = await ok(app.call('GET', `${path}/teams`, { auth }));
    expect(teams.json.teams).toMatchObject([{ name: 'one', permission: 102 }]);
    const users = await ok(app.call('GET', `${path}/collaborators`, { auth }));
    expect(users.json.users).toMatchObject([{ user: { githubLogin: member.login }, permission: 102 }]);
    const { json } = await ok(app.call('GET', `${path}/access`, { auth }));
    expect(json.grants).toHaveLength(2);
    expect(chars).toBeLessThan(20_000);
  } finally {
    db.any = original;
  }
});

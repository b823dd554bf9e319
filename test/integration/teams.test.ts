import { describe, expect, test } from '@jest/globals';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, getUpdate } from '../support/update-calls.ts';

const app = testApp();

interface Scene extends TestStack {
  readonly path: string;
  /** Path of team blue. */
  readonly blue: string;
  readonly viewer: Person;
}

async function scene(): Promise<Scene> {
  const stack = await createStack(app);
  const viewer = await person(app, stack.organization, 'viewer');
  const teams = `/api/orgs/${stack.organization}/teams`;
  await ok(app.call('POST', `${teams}/pulumi`, { auth: stack.auth, body: { name: 'blue', description: 'd' } }));
  return { ...stack, blue: `${teams}/blue`, viewer };
}

const patch = ({ auth, blue }: { auth: string; blue: string }, body: object) => app.call('PATCH', blue, { auth, body });
const change = (of: { auth: string; blue: string }, memberAction: string, member: string) =>
  patch(of, { memberAction, member });
const level = (permission: number) => ({ projectName: 'proj', stackName: 'dev', permission });
const updateBy = ({ auth }: { auth: string }, { path }: TestStack) =>
  app.call('POST', `${path}/update`, { auth, body: {} });

describe('a team', () => {
  test('is created, described and deleted by admins, and seen by members', async () => {
    const of = await scene();
    const { auth, blue, organization, viewer } = of;
    const list = blue.replace('/blue', '');
    await ok(patch(of, { newDisplayName: 'Blue team', newDescription: '' }));
    const team = {
      kind: 'pulumi',
      name: 'blue',
      displayName: 'Blue team',
      description: '',
      userRole: 'none',
      members: [],
    };
    expect((await ok(app.call('GET', list, { auth: viewer.auth }))).json).toEqual({ teams: [team] });
    expect((await ok(app.call('GET', blue, { auth: viewer.auth }))).json).toEqual({ ...team, stacks: [] });
    const create = (name: string) => app.call('POST', `${list}/pulumi`, { auth, body: { name } });
    expect([(await create('blue')).status, (await create('a/b')).status]).toEqual([409, 400]);
    expect((await app.call('POST', `${list}/github`, { auth, body: {} })).json.message).toMatch(/GitHub/);
    await ok(app.call('DELETE', blue, { auth }));
    expect((await app.call('GET', blue, { auth })).status).toBe(404);
    const actions = (await listEvents(app, organization)).map(({ action }) => action);
    expect(actions.slice(-3)).toEqual(['team.create', 'team.change', 'team.delete']);
  });

  test('has members, and admins who change them and nothing else', async () => {
    const of = await scene();
    const { blue, viewer } = of;
    const other = await person(app, of.organization, 'viewer');
    const stranger = await person(app, (await createStack(app)).organization, 'viewer');
    const asViewer = { auth: viewer.auth, blue };
    await ok(change(of, 'add', viewer.login));
    expect((await change(asViewer, 'add', other.login)).status).toBe(403);
    await ok(change(of, 'promote', viewer.login));
    await ok(change(of, 'add', viewer.login));
    await ok(change(asViewer, 'add', other.login));
    await ok(patch(asViewer, { newDescription: 'ours' }));
    expect((await patch(asViewer, { addStackPermission: level(103) })).status).toBe(403);
    expect((await app.call('DELETE', blue, { auth: viewer.auth })).status).toBe(403);
    expect((await change(of, 'add', stranger.login)).status).toBe(404);
    const roles = async () =>
      Object.fromEntries(
        (await ok(app.call('GET', blue, { auth: viewer.auth }))).json.members.map(
          ({ githubLogin, role }: { githubLogin: string; role: string }) => [githubLogin, role],
        ),
      );
    expect(await roles()).toEqual({ [viewer.login]: 'admin', [other.login]: 'member' });
    await ok(change(asViewer, 'demote', viewer.login));
    expect((await change(asViewer, 'remove', other.login)).status).toBe(403);
    await ok(change(of, 'remove', other.login));
    expect((await change(of, 'remove', other.login)).status).toBe(404);
    expect(await roles()).toEqual({ [viewer.login]: 'member' });
    expect((await patch(of, { member: other.login })).status).toBe(400);
    expect((await patch(of, { addEnvironmentPermission: {} })).json.message).toMatch(/ESC/);
  });

  test('has the granted permissions on a stack, and running updates end when they are revoked', async () => {
    const of = await scene();
    const { auth, viewer } = of;
    await ok(change(of, 'add', viewer.login));
    expect((await updateBy(viewer, of)).status).toBe(403);
    await ok(patch(of, { addStackPermission: level(102) }));
    const update = await startUpdate(app, { ...of, auth: viewer.auth }, { journal: true });
    await ok(append(app, update, creation(1, 'r0', of)));
    const listed = async () => (await ok(app.call('GET', of.blue, { auth }))).json.stacks;
    expect(await listed()).toEqual([level(102)]);
    // Instead of what it had.
    await ok(patch(of, { editStackPermission: level(101) }));
    expect(await listed()).toEqual([level(101)]);
    expect((await append(app, update, creation(2, 'late', of))).status).toBe(403);
    expect((await getUpdate(app, of, update)).status).toBe('cancelled');
    await ok(patch(of, { removeStack: { projectName: 'proj', stackName: 'dev' } }));
    const changes = (await listEvents(app, of.organization)).filter(({ action }) => action.startsWith('grant.'));
    expect(changes.map(({ action, details }) => [action, details['permissions']])).toEqual([
      ['grant.add', ['read', 'preview', 'write', 'decrypt']],
      ['grant.add', ['read', 'decrypt']],
      ['grant.remove', ['read', 'preview', 'write', 'decrypt']],
      ['grant.remove', ['read', 'decrypt']],
    ]);
    expect(await listed()).toEqual([]);
    await ok(patch(of, { removeStack: { projectName: 'proj', stackName: 'dev' } }));
    expect((await patch(of, { removeStack: { projectName: 'proj', stackName: 'none' } })).status).toBe(404);
    expect((await patch(of, { addStackPermission: { ...level(101), stackName: 'none' } })).status).toBe(404);
    expect((await patch(of, { addStackPermission: level(7) })).status).toBe(400);
  });

  test('keeps its running updates when it is given another permission on the stack that allows them', async () => {
    const of = await scene();
    await ok(change(of, 'add', of.viewer.login));
    await ok(patch(of, { addStackPermission: level(103) }));
    const update = await startUpdate(app, { ...of, auth: of.viewer.auth }, { journal: true });
    await ok(patch(of, { editStackPermission: level(102) }));
    await ok(append(app, update, creation(1, 'r0', of)));
    expect((await ok(app.call('GET', of.blue, { auth: of.auth }))).json.stacks).toEqual([level(102)]);
  });

  test('changes nothing when a part of a request fails', async () => {
    const of = await scene();
    const body = {
      newDisplayName: 'x',
      memberAction: 'add',
      member: of.viewer.login,
      removeStack: { projectName: 'a', stackName: 'b' },
    };
    expect((await patch(of, body)).status).toBe(404);
    const memberChanges = [of.viewer.login, 'nobody'].map((member) => ({ member, memberAction: 'add' }));
    expect((await patch(of, { memberChanges })).status).toBe(404);
    const { json } = await ok(app.call('GET', of.blue, { auth: of.auth }));
    expect(json).toMatchObject({ displayName: 'blue', members: [] });
    expect((await listEvents(app, of.organization)).at(-1)?.action).toBe('team.create');
  });

  test('gets many members by as many statements as one', async () => {
    const of = await scene();
    const logins = [of.viewer.login];
    for (const _ of [1, 2]) logins.push((await person(app, of.organization, 'viewer')).login);
    const [first = '', second = '', third = ''] = logins;
    const statements = (changes: [string, string][]) => {
      const memberChanges = changes.map(([memberAction, member]) => ({ memberAction, member }));
      return sentStatements(() => ok(patch(of, { memberChanges })), /^(people|teams)\./);
    };
    const few = await statements([['add', first]]);
    const many = await statements([
      ['add', second],
      ['promote', second],
      ['add', second],
      ['add', third],
      ['remove', third],
      ['remove', first],
      ['add', first],
      ['promote', first],
    ]);
    expect(many).toEqual(few);
    await statements([['remove', first]]);
    const { json } = await ok(app.call('GET', of.blue, { auth: of.auth }));
    expect(json.members).toMatchObject([{ githubLogin: second, role: 'admin' }]);
    const events = (await listEvents(app, of.organization)).filter(({ action }) => /^team\.(add|remove)$/.test(action));
    expect(events.map(({ action, details }) => [action, details])).toEqual(
      [
        ['add', first],
        ...[
          ['add', second],
          ['promote', second],
          ['add', second],
          ['add', third],
        ],
        ...[
          ['remove', third],
          ['remove', first],
          ['add', first],
          ['promote', first],
        ],
        ['remove', first],
      ].map(([change, login]) => [change === 'remove' ? 'team.remove' : 'team.add', { login, change }]),
    );
  });

  test('shows stacks only to users who may read them', async () => {
    const of = await scene();
    const { organizationId, userId } = of.viewer;
    await ok(patch(of, { addStackPermission: level(103) }));
    await grant(app, organizationId, { userId }, 'deny', ['read'], { stacks: 'proj/dev' });
    expect((await ok(app.call('GET', of.blue, { auth: of.viewer.auth }))).json.stacks).toEqual([]);
    expect((await app.call('GET', `${of.path}/teams`, { auth: of.viewer.auth })).status).toBe(404);
    expect((await ok(app.call('GET', of.blue, { auth: of.auth }))).json.stacks).toEqual([level(103)]);
  });
});

test('a stack lists the teams and users with grants on it', async () => {
  const of = await scene();
  const { organizationId, userId } = of.viewer;
  await ok(app.call('PATCH', `${of.path}/tags`, { auth: of.auth, body: { env: 'x' } }));
  await ok(change(of, 'add', of.viewer.login));
  const [team] = await query<{ id: string }>(app, 'select id from teams where organization_id = $1', [organizationId]);
  const teamId = team?.id as string;
  const asked = async (what: string, auth = of.viewer.auth) =>
    (await ok(app.call('GET', `${of.path}/${what}`, { auth }))).json;
  expect(await asked('teams')).toEqual({ projectName: 'proj', teams: [] });
  await grant(app, organizationId, { teamId }, 'allow', ['admin'], { tag: ['env', 'x'] });
  await grant(app, organizationId, { teamId }, 'deny', ['admin'], { stacks: 'proj/*' });
  await grant(app, organizationId, { userId }, 'allow', ['read'], { stacks: 'pr*/*' });
  expect((await asked('teams')).teams).toMatchObject([{ name: 'blue', permission: 102, isMember: true }]);
  expect((await asked('collaborators', of.auth)).users).toEqual([
    { user: { name: of.viewer.login, githubLogin: of.viewer.login, avatarUrl: '', email: '' }, permission: 101 },
  ]);
});

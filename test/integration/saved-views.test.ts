import { beforeAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let organization: string;
let ada: Person;
let bob: Person;
let cleo: Person;

const failed = { page: 'stacks', search: { status: 'failed', tag: 'env=prod' } };

beforeAll(async () => {
  ({ organization } = await createStack(app));
  ada = await person(app, organization, 'admin');
  bob = await person(app, organization, 'viewer');
  cleo = await person(app, organization, 'member');
});

const call = (by: Person, name: string, input: object = {}) =>
  command(app, by.token, `views.${name}`, { organization, ...input });
const list = async (by: Person, of = organization) =>
  (await ask(app, by.token, 'views.list', { organization: of })).data.items;

async function save(by: Person, name: string, isShared = false, viewed: object = failed): Promise<string> {
  const { data, error } = await call(by, 'create', { name, isShared, viewed });
  expect(error).toBeNull();
  return data.id;
}

/** The recorded changes of views, oldest first. */
async function listRecorded(): Promise<object[]> {
  const { data } = await ask(app, ada.token, 'audit.list', { organization });
  const changes = data.items.filter(
    ({ action, outcome }: { action: string; outcome: string }) => action.startsWith('view.') && outcome === 'done',
  );
  return changes
    .map(({ action, actor, details }: { action: string; actor: string; details: object }) => ({
      action,
      actor,
      details,
    }))
    .reverse();
}

test('a view is its author’s until it is shared; only shared ones are recorded', async () => {
  const id = await save(bob, '  Failed in prod ');
  const own = {
    id,
    name: 'Failed in prod',
    isShared: false,
    author: bob.login,
    isOwn: true,
    isPinned: true,
    ...failed,
  };
  expect(await list(bob)).toEqual([own]);
  expect(await list(ada)).toEqual([]);
  expect(await listRecorded()).toEqual([]);

  expect((await call(bob, 'change', { id, isShared: true })).error).toBeNull();
  expect(await list(ada)).toEqual([{ ...own, isShared: true, isOwn: false, isPinned: false }]);
  for (const isPinned of [true, true, false]) {
    expect((await call(cleo, 'pin', { id, isPinned })).error).toBeNull();
    expect((await list(cleo))[0].isPinned).toBe(isPinned);
  }
  expect((await list(bob))[0].isPinned).toBe(true);

  // Only its author renames it; another member does not delete it, an admin does.
  for (const who of [ada, cleo]) expect((await call(who, 'change', { id, name: 'mine' })).status).toBe(403);
  expect((await call(cleo, 'remove', { id })).status).toBe(403);
  expect((await call(bob, 'change', { id, name: 'Renamed' })).error).toBeNull();
  expect(await list(cleo)).toMatchObject([{ id, name: 'Renamed', isShared: true }]);
  expect((await call(ada, 'remove', { id })).error).toBeNull();
  for (const who of [ada, bob, cleo]) expect(await list(who)).toEqual([]);
  expect(await listRecorded()).toEqual([
    { action: 'view.change', actor: bob.login, details: { id, name: 'Failed in prod', shared: true } },
    { action: 'view.change', actor: bob.login, details: { id, name: 'Renamed', shared: true } },
    { action: 'view.remove', actor: ada.login, details: { id, name: 'Renamed' } },
  ]);
});

test('its author replaces what a view shows; others see the new filters of a shared one', async () => {
  const id = await save(bob, 'Broken', true);
  const viewed = { page: 'ci', search: { view: 'runs', days: '90' } };
  for (const who of [ada, cleo]) expect((await call(who, 'change', { id, viewed })).status).toBe(403);
  for (const [wrong, status] of [
    [{ page: 'ci', search: { status: 'failed' } }, 400],
    [{ page: 'activity', search: { who: '\ud800' } }, 400],
  ] as const)
    expect((await call(bob, 'change', { id, viewed: wrong })).status).toBe(status);
  expect(await list(cleo)).toMatchObject([{ id, ...failed }]);
  expect((await call(bob, 'change', { id, viewed })).error).toBeNull();
  for (const who of [bob, cleo])
    expect(await list(who)).toMatchObject([{ id, name: 'Broken', isShared: true, ...viewed }]);
  expect((await listRecorded()).at(-1)).toMatchObject({ action: 'view.change', details: { filter: viewed.search } });
  expect((await call(bob, 'remove', { id })).error).toBeNull();
});

test('views of all organizations of a user are listed together, pinned ones first, then own ones', async () => {
  const home = `${organization}-two`;
  const dan = await person(app, home, 'admin');
  await query(app, `insert into memberships (organization_id, user_id, role) values ($1, $2, 'viewer')`, [
    ada.organizationId,
    dan.userId,
  ]);
  const everywhere = async (by: Person) => (await ask(app, by.token, 'views.everywhere')).data.items;
  const ids = [await save(bob, 'a of bob', true), await save(ada, 'b of ada', true), await save(bob, 'hidden')];
  const there = { organization: home, name: 'c at home', isShared: false, viewed: failed };
  expect((await command(app, dan.token, 'views.create', there)).error).toBeNull();
  expect((await call(dan, 'pin', { id: ids[1], isPinned: true })).error).toBeNull();
  expect(await everywhere(dan)).toMatchObject([
    { name: 'c at home', organization: home, isPinned: true, isOwn: true },
    { name: 'b of ada', organization, isPinned: true, isOwn: false },
    { name: 'a of bob', organization, isPinned: false },
  ]);
  expect((await everywhere(ada)).map(({ name: each }: { name: string }) => each)).toEqual(['b of ada', 'a of bob']);
  await query(app, 'delete from memberships where organization_id = $1 and user_id = $2', [
    ada.organizationId,
    dan.userId,
  ]);
  expect(await everywhere(dan)).toMatchObject([{ name: 'c at home' }]);
  await call(bob, 'remove', { id: ids[0] });
  await call(bob, 'remove', { id: ids[2] });
  await call(ada, 'remove', { id: ids[1] });
});

test('a view that is not shared does not exist for others, admins included', async () => {
  const id = await save(bob, 'private');
  const named = await save(bob, 'named');
  for (const who of [ada, cleo])
    for (const [name, input] of [
      ['change', { id, name: 'x' }],
      ['pin', { id, isPinned: true }],
      ['remove', { id }],
    ] as const)
      expect(await call(who, name, input)).toMatchObject({ status: 404, error: { message: 'There is no such view' } });
  const again = await call(bob, 'change', { id, name: 'named' });
  expect(again).toMatchObject({ status: 409, error: { message: 'You have a view of this name already' } });
  expect((await list(bob)).map(({ name }: { name: string }) => name)).toEqual(['named', 'private']);
  for (const each of [id, named]) expect((await call(bob, 'remove', { id: each })).error).toBeNull();
});

test('a member who leaves leaves the shared views only', async () => {
  const leaver = await person(app, organization, 'member');
  const [shared, own] = [await save(leaver, 'left behind', true), await save(leaver, 'own')];
  const ofOthers = await save(ada, 'of ada', true);
  expect((await call(leaver, 'pin', { id: ofOthers, isPinned: true })).error).toBeNull();
  await ok(app.call('DELETE', `/api/orgs/${organization}/members/${leaver.login}`, { auth: ada.auth }));
  const rows = (of: string) => query<{ id: string }>(app, of, [leaver.login]);
  expect(await rows('select v.id from saved_views v join users u on u.id = v.user_id and u.login = $1')).toEqual([
    { id: shared },
  ]);
  expect(
    await rows('select p.view_id as id from saved_view_pins p join users u on u.id = p.user_id and u.login = $1'),
  ).toEqual([]);
  expect((await list(ada)).map(({ id }: { id: string }) => id)).not.toContain(own);
  for (const id of [shared, ofOthers]) expect((await call(ada, 'remove', { id })).error).toBeNull();
});

const name = 'view';
const wrongs: readonly (readonly [string, object, number])[] = [
  ['without a name', { name: ' ' }, 400],
  ['a name of two lines', { name: 'a\nb' }, 400],
  ['a name that nobody sees', { name: '\u200b' }, 400],
  ['a name that turns the text', { name: 'a\u202eb' }, 400],
  ['a name that is not text', { name: '\ud800' }, 400],
  ['a long name', { name: 'n'.repeat(61) }, 400],
  ['another page', { viewed: { page: 'members', search: {} } }, 400],
  ['a parameter of another page', { viewed: { page: 'ci', search: { status: 'failed' } } }, 400],
  ['an unknown status', { viewed: { page: 'stacks', search: { status: 'odd' } } }, 400],
  ['a long text', { viewed: { page: 'stacks', search: { text: 't'.repeat(401) } } }, 400],
  ['text that is none', { viewed: { page: 'activity', search: { who: '\ud800' } } }, 400],
  ['no text', { viewed: { page: 'activity', search: { who: ['x'] } } }, 400],
];

test.each(wrongs)('%s is refused', async (_what, input, status) => {
  expect((await call(bob, 'create', { name, isShared: false, viewed: failed, ...input })).status).toBe(status);
  expect(await list(bob)).toEqual([]);
});

test.each([
  { page: 'activity', search: { kind: 'freezes', who: 'ada', stack: 'web/prod' } },
  { page: 'ci', search: { view: 'runs', days: '90', sort: 'failures', project: 'web' } },
  { page: 'stacks', search: {} },
])('views of the page $page keep its URL', async (viewed) => {
  const id = await save(bob, name, false, viewed);
  expect(await list(bob)).toMatchObject([viewed]);
  expect((await call(bob, 'remove', { id })).error).toBeNull();
});

test('tokens that are not a whole user have no views', async () => {
  const scopes = [{ permissions: ['read'], stacks: '*/*' }];
  const make = async (path: string, auth: string, body: object) =>
    (await ok(app.call('POST', path, { auth, body }))).json.tokenValue as string;
  for (const token of [
    await make('/api/user/tokens', bob.auth, { name: 'narrow', scopes }),
    await make(`/api/orgs/${organization}/tokens`, ada.auth, { name: 'machine', admin: true }),
  ])
    expect(await ask(app, token, 'views.list', { organization })).toMatchObject({
      status: 403,
      error: { message: expect.stringContaining('belong to users') },
    });
});

test('there are at most 50 of a member, and 50 that are shared', async () => {
  await query(
    app,
    `insert into saved_views (organization_id, user_id, name, is_shared, page, search)
     select $1, $2::uuid, 'n' || n, true, 'ci', '{}' from generate_series(1, 49) n`,
    [cleo.organizationId, cleo.userId],
  );
  const make = (by: Person, each: string, isShared: boolean) =>
    call(by, 'create', { name: each, isShared, viewed: failed });
  const made = await Promise.all(['a', 'b', 'c'].map((each) => make(cleo, each, true)));
  expect(made.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
  expect((await make(bob, 'more', true)).error?.message).toMatch(/^50 views are shared here/);
  const { data } = await make(bob, 'own', false);
  expect((await call(bob, 'change', { id: data.id, isShared: true })).status).toBe(409);
  expect((await make(cleo, 'own', false)).error?.message).toMatch(/^You have 50 views here/);
  expect(await list(ada)).toHaveLength(50);
  expect(await list(bob)).toHaveLength(51);
});

test('they go with their author, and with the organization', async () => {
  const home = `${organization}-x`;
  const other = await person(app, home, 'admin');
  const guest = await person(app, home, 'viewer');
  const saveThere = (by: Person) =>
    command(app, by.token, 'views.create', { organization: home, name, isShared: true, viewed: failed });
  for (const by of [other, guest]) expect((await saveThere(by)).error).toBeNull();
  expect(await list(other, home)).toHaveLength(2);
  expect((await ask(app, other.token, 'views.list', { organization })).status).toBe(404);
  await query(app, 'delete from users where id = $1', [guest.userId]);
  expect(await list(other, home)).toHaveLength(1);
  await query(app, 'delete from organizations where name = $1', [home]);
  expect(await query(app, 'select 1 from saved_views where user_id in ($1, $2)', [other.userId, guest.userId])).toEqual(
    [],
  );
  expect(
    await query(app, 'select 1 from saved_view_pins where user_id in ($1, $2)', [other.userId, guest.userId]),
  ).toEqual([]);
});

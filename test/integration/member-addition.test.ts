import { beforeAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp({ settings: { HOLDFAST_MEMBER_ADDITION: 'site-admin' } });
let organization: string;
let admin: Person;

beforeAll(async () => {
  ({ organization } = await createStack(app));
  admin = await person(app, organization, 'admin');
});

test('where only operators add members, admins of an organization add nobody and learn of nobody', async () => {
  const stranger = await person(app, `${organization}-other`, 'member');
  const add = (login: string, by = admin) =>
    command(app, by.token, 'members.add', { organization, login, role: 'viewer' });
  const mayAdd = async (by = admin) => (await ask(app, by.token, 'me.get')).data.mayAddMembers;
  const refused = await add(stranger.login);
  expect(refused).toMatchObject({ status: 403, error: { message: expect.stringContaining('only operators') } });
  expect(await add('no-such-user')).toEqual(refused);
  expect(await mayAdd()).toBe(false);
  const operator = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [operator.userId]);
  expect(await mayAdd(operator)).toBe(true);
  expect((await add(stranger.login, operator)).error).toBeNull();
  expect((await ask(app, stranger.token, 'members.list', { organization })).error).toBeNull();
});

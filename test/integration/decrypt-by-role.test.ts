import { expect, test } from '@jest/globals';
import { runAdminCommand } from '../support/admin.ts';
import { listEvents } from '../support/audit.ts';
import { person } from '../support/grants.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

test('an organization lets viewers and members decrypt, until it turns that off', async () => {
  const stack = await createStack(app);
  const { organization } = stack;
  const people = [stack, await person(app, organization, 'viewer'), await person(app, organization, 'member')];
  const body = { plaintext: 'c2VjcmV0' };
  const { ciphertext } = (await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body }))).json;
  const decrypting = () =>
    Promise.all(
      people.map(async ({ auth }) => {
        const answer = await app.call('POST', `${stack.path}/decrypt`, { auth, body: { ciphertext } });
        return answer.status;
      }),
    );
  const path = `/api/orgs/${organization}/access-policy`;
  const policy = async () => (await ok(app.call('GET', path, { auth: stack.auth }))).json as object;
  const turn = (decryptByRole: boolean) => app.call('PATCH', path, { auth: stack.auth, body: { decryptByRole } });
  const command = (state: string) =>
    runAdminCommand(app, 'grant', 'decrypt-by-role', state, '--organization', organization);

  expect([await policy(), await decrypting()]).toEqual([
    { decryptByRole: true, defaultPermissions: null },
    [200, 200, 200],
  ]);
  expect((await turn(false)).status).toBe(204);
  expect([await policy(), await decrypting()]).toEqual([
    { decryptByRole: false, defaultPermissions: ['read', 'preview', 'write'] },
    [200, 403, 403],
  ]);
  // Nothing changes, so nothing is recorded.
  expect((await turn(false)).status).toBe(204);
  const reads = people.map(({ auth }) => app.call('GET', `${stack.path}/export`, { auth }));
  expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200, 200]);

  expect(await command('on')).toMatchObject({
    code: 0,
    stdout: 'Roles below admin give all permissions of the role.\n',
  });
  expect([await policy(), await decrypting()]).toEqual([
    { decryptByRole: true, defaultPermissions: null },
    [200, 200, 200],
  ]);
  const off = await command('off');
  expect(off).toMatchObject({ code: 0, stdout: 'Roles below admin give at most read, preview, write.\n' });
  expect(await decrypting()).toEqual([200, 403, 403]);
  expect((await command('maybe')).code).toBe(2);

  const changes = (await listEvents(app, organization)).filter(({ action }) => action === 'grant.defaults');
  expect(changes.length).toBe(3);
});

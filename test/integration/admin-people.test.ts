import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { type AdminRun, runAdminCommand, runInProcess } from '../support/admin.ts';
import { listEvents, listPersonalEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, getUpdate } from '../support/update-calls.ts';

const app = testApp();

const admin = (...args: string[]): Promise<AdminRun> => runInProcess(app, 'admin', ...args);

/** Runs a command that must succeed and returns its output. */
async function runOk(...args: string[]): Promise<string> {
  const run = await admin(...args);
  if (run.code !== 0) throw new Error(`${run.code}: ${run.stderr}`);
  return run.stdout;
}

/** Runs a command that must fail with `code` and returns its error message. */
async function runRejected(code: number, ...args: string[]): Promise<string> {
  const run = await admin(...args);
  expect([run.code, run.stdout]).toEqual([code, '']);
  return run.stderr;
}

const status = async (token: string) => (await app.call('GET', '/api/user', { auth: `token ${token}` })).status;

async function roleOf(login: string, organization: string): Promise<string | null> {
  const rows = await query<{ role: string }>(
    app,
    `select m.role from memberships m join users u on u.id = m.user_id join organizations o on o.id = m.organization_id
     where u.login = $1 and o.name = $2`,
    [login, organization],
  );
  return rows[0]?.role ?? null;
}

/** A member with a running update that has saved `r0`. */
async function leaveRunning(): Promise<{ login: string; token: string; owner: TestStack; update: RunningUpdate }> {
  const owner = await createStack(app);
  const login = `member-${randomBytes(4).toString('hex')}`;
  const token = await app.createUser(owner.organization, 'member', login);
  const stack = { ...owner, auth: `token ${token}` };
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'r0', stack)));
  return { login, token, owner, update };
}

test('creates organizations, users and tokens, and does not change existing ones', async () => {
  expect(await runOk('create-organization', 'acme')).toBe('Created organization acme.\n');
  expect(await runOk('create-user', 'ada', '--organization', 'acme', '--role', 'admin', '--site-admin')).toBe(
    'Created user ada, site admin, admin in acme.\n',
  );
  const token = (await runOk('user', 'create-token', 'ada', '--description', 'laptop')).trim();
  expect(await status(token)).toBe(200);
  expect(await runOk('create-user', 'ada', '--organization', 'acme')).toBe('User ada exists.\n');
  expect(await roleOf('ada', 'acme')).toBe('admin');
  expect(await runRejected(1, 'create-user', 'ADA')).toContain('user ada already exists');
  await runOk('create-organization', 'other');
  const asked = await runRejected(1, 'create-user', 'ada', '--organization', 'acme', '--role', 'viewer');
  expect(asked).toContain('is admin in acme: holdfast admin set-role ada viewer --organization acme');
  expect(await runRejected(1, 'create-user', 'ada', '--organization', 'other')).toContain(
    'is not in other: holdfast admin add-member ada --organization other --role member',
  );
  expect([await roleOf('ada', 'acme'), await roleOf('ada', 'other')]).toEqual(['admin', null]);
  await runOk('create-user', 'bob');
  expect(await runRejected(1, 'create-user', 'bob', '--site-admin')).toContain('holdfast admin set-site-admin bob');
  expect(await query(app, `select login from users where site_admin`)).toEqual([{ login: 'ada' }]);
});

describe('a running update is cancelled at once by', () => {
  const tokenId = async (token: string): Promise<string> => {
    const hash = createHash('sha256').update(token).digest();
    return (await query<{ id: string }>(app, 'select id from api_tokens where token_hash = $1', [hash]))[0]?.id ?? '';
  };
  type Left = Awaited<ReturnType<typeof leaveRunning>>;
  const commands: readonly [string, (left: Left) => Promise<string[]> | string[], number][] = [
    ['revoke', async ({ token }) => ['revoke', await tokenId(token)], 401],
    ['revoke --user', ({ login }) => ['revoke', '--user', login], 401],
    ['deactivate-user', ({ login }) => ['deactivate-user', login], 401],
    ['remove-member', ({ login, owner }) => ['remove-member', login, '--organization', owner.organization], 200],
    ['set-role', ({ login, owner }) => ['set-role', login, 'viewer', '--organization', owner.organization], 200],
  ];

  test.each(commands)('%s', async (_, command, then) => {
    const left = await leaveRunning();
    const run = await runAdminCommand(app, ...(await command(left)));
    expect([run.code, run.stdout]).toEqual([
      0,
      expect.stringContaining(`Update ${left.update.id} was cancelled: the `),
    ]);
    expect(run.stderr).toContain('"audit"');
    expect(await getUpdate(app, left.owner, left.update)).toMatchObject({ status: 'cancelled', result: 'failed' });
    expect(await status(left.token)).toBe(then);
    const late = await append(app, left.update, creation(7, 'late', left.owner));
    expect([late.status, late.json.message]).toEqual([403, expect.stringMatching(/^This update was cancelled: the /)]);
    expect(await exportedNames(app, left.owner)).toEqual(['r0']);
    await startUpdate(app, left.owner);
  });

  test('token max-days --json, which prints its document only, and succeeds even if that fails', async () => {
    const left = await leaveRunning();
    const { organization } = left.owner;
    const age = `update api_tokens set created_at = now() - interval '9 days' where token_hash = $1`;
    const limit = ['token', 'max-days', '7', '--organization', organization, '--json'];
    await query(app, age, [createHash('sha256').update(left.token).digest()]);
    await query(
      app,
      `create function refuse_end() returns trigger language plpgsql as $$ begin raise 'no disk'; end $$;
       create trigger refuse_end before update on updates for each row when (new.ended_at is not null)
       execute function refuse_end()`,
    );
    try {
      const run = await admin(...limit);
      expect([run.code, run.stdout]).toEqual([0, expect.stringMatching(/^\{.*\}\n$/)]);
    } finally {
      await query(app, 'drop function refuse_end cascade');
    }
    const run = await admin(...limit);
    expect(JSON.parse(run.stdout)).toMatchObject({ schema: 'holdfast.admin.token.max-days/v1' });
    expect(run.stderr).toContain(`Update ${left.update.id} was cancelled: the `);
    expect(await getUpdate(app, left.owner, left.update)).toMatchObject({ status: 'cancelled' });
  });
});

test('a deactivated user is rejected with every token, gets no new token, and is restored unchanged', async () => {
  const token = await app.createUser('deactivation', 'viewer', 'dan');
  await runOk('deactivate-user', 'dan');
  expect(await status(token)).toBe(401);
  expect(await runRejected(1, 'user', 'create-token', 'dan')).toContain('holdfast admin reactivate-user dan');
  expect(await runRejected(1, 'create-user', 'dan')).toContain('is deactivated');
  expect(await runOk('list', '--user', 'dan')).toMatch(/deactivation {2}dan {2}viewer\n(.*\n)*.*dan {2}deactivated/);
  await runOk('reactivate-user', 'dan');
  // A replica keeps rejecting a token for 2 s after it has rejected it.
  await until(async () => (await status(token)) === 200, 'the token is let in');
});

test('roles are changed by name; the last admin and the last site admin are removed only with --force', async () => {
  const [boss] = [await app.createUser('firm', 'admin', 'boss'), await app.createUser('firm', 'member', 'eve')];
  await query(app, `update users set site_admin = login = 'boss'`);
  const inFirm = ['--organization', 'firm'];
  for (const command of [
    ['remove-member', 'boss', ...inFirm],
    ['set-role', 'boss', 'member', ...inFirm],
    ['deactivate-user', 'boss'],
  ])
    expect(await runRejected(1, ...command)).toContain('boss is the last admin of firm');
  expect(await runRejected(1, 'unset-site-admin', 'boss')).toContain('boss is the last site admin');
  expect([await roleOf('boss', 'firm'), await status(boss)]).toEqual(['admin', 200]);

  expect(await runOk('set-role', 'eve', 'admin', ...inFirm)).toBe(
    'User eve is now admin in firm; the role was member.\n',
  );
  await runOk('set-site-admin', 'eve');
  await runOk('unset-site-admin', 'boss');
  await runOk('remove-member', 'boss', ...inFirm);
  expect(await roleOf('boss', 'firm')).toBeNull();
  expect(await runRejected(1, 'deactivate-user', 'eve')).toContain('last admin');
  await runOk('deactivate-user', 'eve', '--force');
  expect(await runOk('add-member', 'boss', ...inFirm, '--role', 'viewer')).toBe('User boss is viewer in firm.\n');
});

test('exits with 2 for an invalid command line and with 1 for a failed command', async () => {
  const [misspelled, unknown] = [
    await runAdminCommand(app, 'remove-member', '--organization', 'acme'),
    await runAdminCommand(app, 'user', 'create-token', 'nobody'),
  ];
  expect([misspelled.code, misspelled.stderr]).toEqual([
    2,
    expect.stringContaining("missing required argument 'login'"),
  ]);
  expect([unknown.code, unknown.stderr]).toEqual([1, 'holdfast: there is no user "nobody"\n']);
  const reserved = await admin('create-organization', 'metrics');
  expect([reserved.code, reserved.stderr]).toEqual([1, 'holdfast: Organization name "metrics" is reserved\n']);
});

test('missing objects and invalid arguments are reported in a sentence', async () => {
  for (const [code, sentence, ...command] of [
    [1, 'there is no user "nobody"', 'deactivate-user', 'nobody'],
    [1, 'there is no organization "nowhere"', 'remove-member', 'nobody', '--organization', 'nowhere'],
    [1, 'there is no valid token', 'revoke', 'abc'],
    [1, 'there is no role "owner"', 'set-role', 'nobody', 'owner', '--organization', 'x'],
    [2, "missing required argument 'login'", 'remove-member', '--organization', 'acme'],
    [2, "required option '--organization <organization>' not specified", 'remove-member', 'ada'],
    [2, "unknown option '--role'", 'list', '--role', 'admin'],
    [2, "unknown option '--orgnization'", 'create-user', 'ada', '--orgnization', 'acme'],
    [2, "too many arguments for 'deactivate-user'", 'deactivate-user', 'a', 'b'],
    [2, "unknown command 'remove'", 'remove', 'a'],
  ] as const)
    expect(await runRejected(code, ...command)).toContain(sentence);
  const help = await runOk('help');
  for (const command of ['remove-member', 'reactivate-user', 'unset-site-admin', 'revoke --user', 'rewrap-keys'])
    expect(help).toContain(command);
});

test('each change is an event in the audit log of its organization, in the same transaction', async () => {
  await runOk('create-organization', 'audited');
  await runOk('create-user', 'audited-user', '--organization', 'audited', '--role', 'viewer');
  await runOk('set-role', 'audited-user', 'admin', '--organization', 'audited');
  const token = await runOk('user', 'create-token', 'audited-user');
  await runRejected(1, 'deactivate-user', 'audited-user');
  await runOk('deactivate-user', 'audited-user', '--force');
  const events = await listEvents(app, 'audited');
  expect(events.map(({ action, object }) => [action, object])).toEqual([
    ['organization.create', 'audited'],
    ['user.create', 'audited-user'],
    ['member.role', 'audited-user'],
    ['user.deactivate', 'audited-user'],
  ]);
  const own = (await listPersonalEvents(app, 'audited-user')).map(({ action }) => action);
  expect(own).toEqual(['user.create', 'token.create', 'user.deactivate']);
  await runOk('team', 'create', 'blue', '--organization', 'audited');
  await runOk('team', 'create', 'blue', '--organization', 'audited');
  const bot = await runOk('token', 'create', 'bot', '--organization', 'audited', '--team', 'blue');
  const [{ id } = { id: '' }] = await query<{ id: string }>(app, `select id from api_tokens where name = 'bot'`);
  const rotated = await runOk('token', 'rotate', id);
  await runOk('grant', 'deny', 'write', '--stacks', 'web/*', '--team', 'blue', '--organization', 'audited');
  await runOk('token', 'max-days', '9', '--organization', 'audited', '--preview');
  await runOk('token', 'max-days', '9', '--organization', 'audited');
  await runOk('revoke', id);
  await runOk('team', 'delete', 'blue', '--organization', 'audited');
  const later = (await listEvents(app, 'audited')).slice(events.length);
  expect(later.map(({ action, object, details }) => [action, object, details['command']])).toEqual([
    ['team.create', 'blue', 'team create'],
    ['token.create', 'bot', 'token create'],
    ['token.rotate', id, 'token rotate'],
    ['grant.add', 'web/*', 'grant deny'],
    ['token.limit', 'audited', 'token max-days'],
    ['token.revoke', id, 'revoke'],
    ['team.delete', 'blue', 'team delete'],
  ]);
  for (const secret of [bot, rotated]) expect(JSON.stringify(later)).not.toContain(secret.trim());
  expect(events[2]).toMatchObject({ actor: 'operator', details: { arguments: ['audited-user', 'admin'] } });
  expect(events.every(({ login }) => login !== '')).toBe(true);
  expect(JSON.stringify(events)).not.toContain(token.trim());
});

import { beforeAll, expect, jest, test } from '@jest/globals';
import { type AuditLogRule, logRuleOf } from '../../src/cli/admin/audit-log-rules.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { type AuditAction, auditActions } from '../../src/shared/audit/audit-actions.ts';
import { listEvents } from '../support/audit.ts';
import { SoftwareAuthenticator } from '../support/authenticator.ts';
import { goodPassword, PageBrowser, setPassword, withInput } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

// Passkeys need a host name.
const app = testApp({ settings: { HOLDFAST_PUBLIC_URL: 'http://localhost:9090' } });
let organization: string;
let other: string;
let someone: Person;
let admin: Person;

/** The audit log in which each action is recorded. */
const decisions: Readonly<Record<AuditAction, AuditLogRule>> = {
  ...(Object.fromEntries(
    [
      ...[
        'organization.create',
        'organization.quota',
        'configuration.apply',
        'bootstrap.apply',
        'audit.export',
        'database.loss',
      ],
      ...['add', 'invite', 'withdraw', 'accept', 'decline', 'leave', 'role', 'remove', 'provision'].map(
        (each) => `member.${each}`,
      ),
      ...['token.limit', 'token.exchange', 'key.rotate', 'key.rewrap', 'job.retry', 'job.discard'],
      ...['issuer.add', 'issuer.change', 'issuer.remove', 'issuer.policies'],
      ...['create', 'change', 'delete', 'add', 'remove', 'provision'].map((each) => `team.${each}`),
      ...['grant.add', 'grant.remove', 'grant.change', 'grant.defaults'],
      ...['create', 'change', 'remove', 'assign', 'unassign'].map((each) => `role.${each}`),
      ...[
        'create',
        'delete',
        'undelete',
        'purge',
        'rename',
        'tags',
        'import',
        'restore',
        'repair',
        'export',
        'hold',
        'release',
      ].map((each) => `stack.${each}`),
      ...['stack.journal', 'stack.accept', 'stack.recompact', 'secret.decrypt', 'secret.show'],
      ...['create', 'start', 'end', 'cancel', 'drain', 'evict', 'stop', 'expire', 'break-glass'].map(
        (each) => `update.${each}`,
      ),
      ...['version.pin', 'version.unpin'],
      ...['ask', 'give', 'withdraw', 'use'].map((each) => `approval.${each}`),
      ...['begin', 'publish', 'remove'].map((each) => `policy-pack.${each}`),
      ...['create', 'change', 'remove'].map((each) => `policy-group.${each}`),
      ...['update-rule.set', 'update-rule.remove'],
      ...['create', 'change', 'remove', 'ping', 'redeliver'].map((each) => `webhook.${each}`),
      ...['embed.create', 'embed.revoke'],
      ...['view.create', 'view.change', 'view.remove'],
    ].map((action) => [action, 'organization']),
  ) as Record<AuditAction, AuditLogRule>),
  'organization.delete': 'server',
  'bundle.begin': 'server',
  'database.loss': 'server',
  'installation.repair': 'server',
  'installation.read-only': 'server',
  'installation.take-over': 'server',
  'site.promote': 'server',
  'site.demote': 'server',
  'site.replace': 'server',
  'key.rewrap': 'server',
  'job.retry': 'server',
  'job.discard': 'server',
  'user.create': 'person',
  'user.site-admin': 'person',
  'user.link': 'person',
  // Its members change: they are shown as deactivated.
  'user.deactivate': 'members',
  'user.reactivate': 'members',
  'session.begin': 'person',
  'session.end': 'person',
  'sign-in-link.create': 'person',
  'password.set': 'person',
  'password.remove': 'person',
  'passkey.add': 'person',
  'passkey.remove': 'person',
  'token.create': 'token',
  'token.revoke': 'token',
  'token.rotate': 'token',
};

beforeAll(async () => {
  ({ organization } = await createStack(app));
  other = `${organization}-other`;
  admin = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = false');
  someone = await newPerson();
});

/** A member of two organizations, or of one. */
async function newPerson({ isInOther = true } = {}): Promise<Person> {
  const found = await person(app, organization, 'member');
  await person(app, other, 'viewer');
  if (isInOther)
    await query(
      app,
      `insert into memberships (organization_id, user_id, role) select id, $2, 'member' from organizations where name = $1`,
      [other, found.userId],
    );
  await setPassword(app, found.login);
  return found;
}

async function operator(...args: string[]): Promise<void> {
  const spies = (['log', 'error'] as const).map((stream) => jest.spyOn(console, stream).mockImplementation(() => {}));
  try {
    const config = { ...app.context.config, logLevel: 'silent' as const };
    const code = await withInput(goodPassword, () => runCommandLine(['admin', ...args], () => config));
    expect([args, code]).toEqual([args, 0]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Does with an account what can be done with it, and returns the actions that it must have recorded. */
async function live({ auth, login }: Person): Promise<readonly AuditAction[]> {
  const browser = new PageBrowser(app);
  expect((await browser.signIn(login)).status).toBe(303);
  const authenticator = new SoftwareAuthenticator();
  const response = authenticator.create((await browser.postJson('/account/passkeys/options')).json);
  expect((await browser.postJson('/account/passkeys', { name: 'key', response })).status).toBe(200);
  expect((await browser.post('/account/passkeys/remove', { passkey: authenticator.id })).status).toBe(303);
  const passwords = { present: goodPassword, next: `${goodPassword}!` };
  expect((await browser.post('/account/password', passwords)).status).toBe(303);
  expect((await browser.post('/account/sign-out-everywhere')).status).toBe(303);
  const made = (await ok(app.call('POST', '/api/user/tokens', { auth, body: { name: 'my secret project' } }))).json;
  await ok(app.call('POST', `/api/user/tokens/${made.id}/rotate`, { auth, body: {} }));
  await ok(app.call('DELETE', `/api/user/tokens/${made.id}`, { auth }));
  await operator('user', 'set-password', login);
  await operator('user', 'sign-out', login);
  await operator('user', 'remove-password', login);
  await operator('user', 'link', login, '--issuer', 'https://id.example.com', '--subject', login);
  await operator('user', 'create-token', login);
  await operator('set-site-admin', login);
  await operator('unset-site-admin', login, '--force');
  const [row] = await query<{ id: string }>(
    app,
    `select t.id from api_tokens t join users u on u.id = t.user_id where u.login = $1 and t.revoked_at is null and not t.is_session
     order by t.created_at desc limit 1`,
    [login],
  );
  await operator('revoke', row?.id ?? '');
  return [
    ...(['session.begin', 'session.end', 'password.set', 'password.remove', 'passkey.add', 'passkey.remove'] as const),
    ...(['user.link', 'user.site-admin', 'token.create', 'token.rotate', 'token.revoke'] as const),
  ];
}

/** Actions of the log of an organization, or with '' of the server, that are about an account. */
async function personal(of: string, since: number): Promise<readonly string[]> {
  const events = (await listEvents(app, of)).filter(({ number }) => Number(number) > since);
  const kinds: readonly string[] = ['person', 'token', 'members'];
  return [...new Set(events.map(({ action }) => action))]
    .filter((action) => kinds.includes(logRuleOf(action as AuditAction)))
    .sort();
}

async function lastNumber(): Promise<number> {
  const [row] = await query<{ last: string }>(app, 'select coalesce(max(number), 0) as last from audit_events');
  return Number(row?.last);
}

test('each action is shown somewhere', () => {
  const names = Object.keys(auditActions) as AuditAction[];
  expect(Object.fromEntries(names.map((name) => [name, logRuleOf(name)]))).toEqual(decisions);
});

test('actions on accounts are in the log of the server, and not in that of an organization', async () => {
  const since = await lastNumber();
  const actions = [...(await live(someone))].sort();
  expect(await personal('', since)).toEqual(actions);
  expect(await personal(organization, since)).toEqual([]);
  expect(await personal(other, since)).toEqual([]);
  expect(JSON.stringify(await listEvents(app, organization))).not.toContain('my secret project');
  await operator('deactivate-user', someone.login);
  for (const log of ['', organization, other]) expect(await personal(log, since)).toContain('user.deactivate');
});

test('an organization whose identity provider made the account sees it, unless the user is in another one', async () => {
  const provisioned = await newPerson({ isInOther: false });
  const shared = await newPerson();
  const mapped = await newPerson({ isInOther: false });
  for (const { userId } of [provisioned, shared]) {
    await query(app, 'update users set provisioned_by = (select id from organizations where name = $1) where id = $2', [
      organization,
      userId,
    ]);
    await query(
      app,
      'insert into scim_users (organization_id, user_id) select id, $2 from organizations where name = $1',
      [organization, userId],
    );
  }
  await query(
    app,
    `insert into mapped_memberships (organization_id, user_id, role) select id, $2, 'member' from organizations where name = $1`,
    [organization, mapped.userId],
  );
  // Its provider knows the member, but did not make the account.
  const adopted = await newPerson();
  await query(
    app,
    'insert into scim_users (organization_id, user_id) select id, $2 from organizations where name = $1',
    [other, adopted.userId],
  );
  for (const each of [provisioned, shared, mapped]) {
    const since = await lastNumber();
    const actions = [...(await live(each))].sort();
    expect(await personal(organization, since)).toEqual(each === provisioned ? actions : []);
    expect(await personal('', since)).toEqual(actions);
    expect(await personal(other, since)).toEqual([]);
  }
  const since = await lastNumber();
  await live(adopted);
  expect(await personal(other, since)).toEqual([]);
});

test('tokens of an organization are its matter; operators read the log of the server, and other callers do not', async () => {
  const since = await lastNumber();
  const made = await app.call('POST', `/api/orgs/${organization}/tokens`, { auth: admin.auth, body: { name: 'bot' } });
  await operator('revoke', (await ok(Promise.resolve(made))).json.id);
  expect(await personal(organization, since)).toEqual(['token.create', 'token.revoke']);
  expect(await personal('', since)).toEqual([]);
  expect((await ask(app, admin.token, 'operator.audit', {})).status).toBe(403);
  const root = await person(app, other, 'viewer');
  await query(app, 'update users set site_admin = true where id = $1', [root.userId]);
  const { data } = await ask(app, root.token, 'operator.audit', { actor: someone.login, action: 'session.begin' });
  expect(data.items.map(({ actor, action }: Record<string, string>) => [actor, action])).toContainEqual([
    someone.login,
    'session.begin',
  ]);
});

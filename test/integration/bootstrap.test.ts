import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { applyBootstrap } from '../../src/shared/identity/bootstrap.ts';
import { BootstrapError } from '../../src/shared/identity/bootstrap-file.ts';
import { bootstrapAtStart } from '../../src/shared/identity/bootstrap-start.ts';
import { readBootstrapFile } from '../../src/shared/identity/read-bootstrap-file.ts';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { describeWeakToken } from '../../src/shared/platform/crypto/weak-secrets.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { Provider } from '../support/scim.ts';
import { exportedNames } from '../support/stack-state.ts';
import { ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

let app: TestApp;
let directory: string;
beforeAll(async () => {
  app = await createTestApp();
  directory = mkdtempSync(path.join(tmpdir(), 'holdfast-bootstrap-'));
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const token = (name: string) => `${name}-token-0123456789`;

function read(content: string, name = 'bootstrap.yaml'): ReturnType<typeof readBootstrapFile> {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  return readBootstrapFile(file);
}

const apply = (content: string) => applyBootstrap(app.context.db, read(content));

async function rolesOf(secret: string): Promise<{ login: string; siteAdmin: boolean; organizations: string[] }> {
  const { json } = await ok(app.call('GET', '/api/user', { auth: `token ${secret}` }));
  const organizations = json.organizations.map((one: { name: string }) => one.name);
  return { login: json.githubLogin, siteAdmin: json.siteAdmin, organizations };
}

function problemOf(content: string): string {
  try {
    read(content);
  } catch (error) {
    expect(error).toBeInstanceOf(BootstrapError);
    return (error as Error).message;
  }
  throw new Error('The file was taken');
}

describe('applying', () => {
  const file = `
organizations:
  - name: acme
    members:
      - { login: ann, role: admin, token: ${token('ann')}, siteAdmin: true }
      - { login: ben, role: viewer, token: ${token('ben')} }
      - { login: tokenless, role: member }
  - name: empty
`;

  test('creates organizations, users, roles and tokens', async () => {
    await apply(file);
    expect(await rolesOf(token('ann'))).toEqual({ login: 'ann', siteAdmin: true, organizations: ['acme'] });
    expect(await rolesOf(token('ben'))).toEqual({ login: 'ben', siteAdmin: false, organizations: ['acme'] });
    const create = (secret: string) =>
      app.call('POST', '/api/stacks/acme/proj', { auth: `token ${secret}`, body: { stackName: secret } });
    expect((await create(token('ann'))).status).toBe(200);
    expect((await create(token('ben'))).status).toBe(403);
    expect(await query(app, `select 1 from organizations where name = 'empty'`)).toHaveLength(1);
  });

  test('the same file again, by many replicas at once, changes nothing', async () => {
    const everything = async () => [
      await query(app, 'select * from organizations order by id'),
      await query(app, 'select * from users order by id'),
      await query(app, 'select * from memberships order by user_id, organization_id'),
      await query(app, 'select id, user_id, token_hash, created_at from api_tokens order by id'),
    ];
    await apply(file);
    const before = await everything();
    await Promise.all(Array.from({ length: 6 }, () => apply(file)));
    expect(await everything()).toEqual(before);
  });

  test('sets roles that differ and removes nothing', async () => {
    await apply(file);
    await apply(`organizations: [{ name: acme, members: [{ login: ben, role: member }] }]`);
    const roles = await query(
      app,
      `select u.login, m.role from memberships m join users u on u.id = m.user_id join organizations o on o.id = m.organization_id
       where o.name = 'acme' order by u.login`,
    );
    expect(roles).toEqual([
      { login: 'ann', role: 'admin' },
      { login: 'ben', role: 'member' },
      { login: 'tokenless', role: 'member' },
    ]);
    expect((await rolesOf(token('ben'))).login).toBe('ben');
  });

  test('a file with a token of another user is rejected completely, without quoting the token', async () => {
    await apply(file);
    const clash = `organizations: [{ name: clash, members: [{ login: eve, role: admin, token: ${token('ann')} }] }]`;
    const applying = apply(clash);
    await expect(applying).rejects.toThrow(BootstrapError);
    await expect(applying).rejects.toThrow(/eve/);
    await expect(applying).rejects.not.toThrow(token('ann'));
    expect(await query(app, `select 1 from organizations where name = 'clash'`)).toEqual([]);
    expect((await rolesOf(token('ann'))).login).toBe('ann');
  });

  test('a login that differs only in case from an existing one is the same user', async () => {
    await apply(file);
    await apply(`organizations: [{ name: acme, members: [{ login: TokenLess, role: viewer }] }]`);
    expect(await query(app, `select login from users where lower(login) = 'tokenless'`)).toEqual([
      { login: 'tokenless' },
    ]);
  });

  test('a user whom the file lists keeps the login, whatever the identity provider says', async () => {
    const by = await Provider.of(app, 'provided');
    const ada = await by.addUser('ada');
    const bea = await by.addUser('bea');
    const cid = await by.addUser('cid');
    const listed = `
organizations:
  - name: provided
    members:
      - { login: ada, role: admin, token: ${token('ada')} }
      - { login: bea, role: member }
`;
    await apply(listed);
    const rename = (id: string, value: string) => by.patch(`Users/${id}`, { op: 'replace', path: 'userName', value });
    for (const id of [ada, bea]) {
      const { json, status } = await rename(id, 'other');
      expect([status, json.scimType, json.detail]).toEqual([400, 'mutability', expect.stringContaining('bootstrap')]);
    }
    expect((await rename(cid, 'cid.renamed')).status).toBe(200);
    await apply(listed);
    expect((await rolesOf(token('ada'))).login).toBe('ada');
  });

  test('a member whom the identity provider has suspended or removed stays away, until somebody adds the member', async () => {
    const listed = `
organizations:
  - name: leaving
    members:
      - { login: lea, role: admin, token: ${token('lea')} }
      - { login: leo, role: admin, token: ${token('leo')} }
      - { login: lil, role: admin, token: ${token('lil')} }
`;
    await apply(listed);
    const by = await Provider.of(app, 'leaving');
    const idOf = async (login: string) =>
      (await ok(by.find('Users', `userName eq "${login}"`))).json.Resources[0].id as string;
    const suspend = async (login: string, value: boolean) =>
      ok(by.patch(`Users/${await idOf(login)}`, { op: 'replace', path: 'active', value }));
    for (const login of ['lea', 'leo']) await suspend(login, false);
    await ok(by.call('DELETE', `Users/${await idOf('leo')}`));
    for (const _ of [1, 2]) {
      const { warnings } = await apply(listed);
      expect(warnings).toEqual(
        ['lea', 'leo'].map((login) => expect.stringContaining(`${login} was not added to leaving`)),
      );
    }
    for (const login of ['lea', 'leo']) expect((await rolesOf(token(login))).organizations).toEqual([]);
    expect((await by.call('GET', `Users/${await idOf('lea')}`)).json.active).toBe(false);
    await suspend('lea', true);
    await by.addUser('leo');
    expect((await apply(listed)).warnings).toEqual([]);
    for (const login of ['lea', 'leo']) expect((await rolesOf(token(login))).organizations).toEqual(['leaving']);
  });

  test('a revoked token stays revoked', async () => {
    await apply(`organizations: [{ name: late, members: [{ login: roy, role: admin, token: ${token('roy')} }] }]`);
    await query(
      app,
      `update api_tokens set revoked_at = now() where user_id = (select id from users where login = 'roy')`,
    );
    await apply(`organizations: [{ name: late, members: [{ login: roy, role: admin, token: ${token('roy')} }] }]`);
    expect((await app.call('GET', '/api/user', { auth: `token ${token('roy')}` })).status).toBe(401);
  });

  test('any other token of 16 characters works, including older ones of our own', async () => {
    const older = `hf-${'aB3_-'.repeat(8)}xyz`;
    const other = `hf-${'q7Tz0LmX2vKd'.repeat(4)}`;
    const members = `[{ login: old, role: viewer, token: ${older} }, { login: oth, role: viewer, token: ${other} }]`;
    await apply(`organizations: [{ name: acme, members: ${members} }]`);
    expect((await rolesOf(older)).login).toBe('old');
    expect((await rolesOf(other)).login).toBe('oth');
  });

  test('JSON is accepted as well', async () => {
    const json = JSON.stringify({ organizations: [{ name: 'json', members: [] }] });
    await applyBootstrap(app.context.db, read(json, 'bootstrap.json'));
    expect(await query(app, `select 1 from organizations where name = 'json'`)).toHaveLength(1);
  });
});

describe('an invalid file', () => {
  const secret = token('secret');
  const member = (text: string) => `organizations: [{ name: acme, members: [{ login: ann, role: admin }, ${text}] }]`;

  test.each([
    ['an unknown role', member(`{ login: ben, role: owner, token: ${secret} }`), '/organizations/0/members/1/role'],
    ['a member without a role', member(`{ login: ben, token: ${secret} }`), '/organizations/0/members/1'],
    ['an unknown field', member(`{ login: ben, role: admin, tokn: ${secret} }`), '/organizations/0/members/1'],
    [
      'a token that is too short',
      member('{ login: ben, role: admin, token: tooshort }'),
      '/organizations/0/members/1/token',
    ],
    ['a token that is a number', member('{ login: ben, role: admin, token: 12345678901234567 }'), '/members/1/token'],
    ['an organization without a name', 'organizations: [{}]', '/organizations/0'],
    ['no organizations', '{}', 'organizations'],
    ['a list', '[]', '/'],
    ['nothing', '', '/'],
    ['an invalid organization name', `organizations: [{ name: "a b" }]`, '"a b"'],
    [
      'a token of our own form that is mistyped',
      member(`{ login: ben, role: admin, token: hf-${'tooshort'.repeat(6)}x }`),
      'token of ben',
    ],
    ['an invalid login', member(`{ login: "a/b", role: admin, token: ${secret} }`), '"a/b"'],
  ])('%s: the message names the setting, the file and the position, and no token', (_name, content, position) => {
    const problem = problemOf(content);
    expect(problem).toContain('HOLDFAST_BOOTSTRAP');
    expect(problem).toContain(position);
    for (const hidden of [secret, 'tooshort', '12345678901234567']) expect(problem).not.toContain(hidden);
  });

  test.each([
    ['YAML that breaks off', `organizations: [{ name: acme, members: [{ login: ann, token: ${secret}`],
    ['YAML with an odd indent', `organizations:\n  - name: acme\n   token: ${secret}\n  x`],
    ['a name given twice', `organizations: []\norganizations: [${secret}]`],
    ['an alias without an anchor', `organizations: *${secret}`],
    ['a token out of place', `organizations: []\n}${secret}`],
    ['a key that spans lines', `? [\n${secret}\n]: x\n${secret}\n\t: y`],
  ])('%s: the message does not quote the text', (_name, content) => {
    const problem = problemOf(content);
    expect(problem).toMatch(/HOLDFAST_BOOTSTRAP.*bootstrap\.yaml/);
    expect(problem).not.toContain(secret);
  });

  test('reports all problems at once, up to a limit', () => {
    const members = Array.from({ length: 40 }, () => '{ login: 1, role: no }').join(', ');
    const problem = problemOf(`organizations: [{ name: acme, members: [${members}] }]`);
    expect(problem).toContain('/organizations/0/members/0/login');
    expect(problem).toContain('/organizations/0/members/1/');
    expect(problem.length).toBeLessThan(3_000);
  });

  test('a missing file is reported as missing', () => {
    expect(() => readBootstrapFile(path.join(directory, 'none.yaml'))).toThrow(
      /HOLDFAST_BOOTSTRAP.*none\.yaml.*ENOENT/,
    );
  });
});

describe('a file that manages', () => {
  const org = 'managed';
  const list = (members: string, more = '') =>
    `organizations: [{ name: ${org}, manage: true${more}, members: [${members}] }]`;
  const ann = (secret = token('ann-m')) => `{ login: ann-m, role: admin, token: ${secret}, siteAdmin: true }`;
  const ben = (secret = token('ben-m')) => `{ login: ben-m, role: member, token: ${secret} }`;
  // Checked in Postgres only: a replica keeps rejecting a token for 2 s after it has rejected it.
  const status = async (secret: string) =>
    (await app.context.identity.findCaller(hashToken(secret), { organization: null, project: null, stack: null }))
      ? 200
      : 401;
  const membersOf = async (name: string) =>
    (
      await query<{ login: string }>(
        app,
        `select u.login from memberships m join users u on u.id = m.user_id join organizations o on o.id = m.organization_id
         where o.name = $1 order by u.login`,
        [name],
      )
    ).map(({ login }) => login);

  test('removes members, tokens and site admins that it no longer lists, once', async () => {
    await apply(list(`${ann()}, ${ben()}, { login: sue-m, role: admin, token: ${token('sue-m')}, siteAdmin: true }`));
    const byHand = await app.createUser(org, 'member', 'hand-m');
    const elsewhere = await app.createUser('unlisted', 'member', 'ben-m');
    const result = await apply(list(ann()));
    expect(result.removed).toHaveLength(6);
    expect(result.removed.join()).not.toContain('token-0123456789');
    expect(await membersOf(org)).toEqual(['ann-m']);
    expect(await membersOf('unlisted')).toEqual(['ben-m']);
    expect([await status(token('ben-m')), await status(token('sue-m')), await status(token('ann-m'))]).toEqual([
      401, 401, 200,
    ]);
    // A token that did not come from the file stays valid but has no more rights here.
    expect([await status(byHand), await status(elsewhere)]).toEqual([200, 200]);
    expect((await app.call('GET', `/api/stacks/${org}/p/s`, { auth: `token ${byHand}` })).status).toBe(404);
    expect(await query(app, `select login from users where site_admin and login like '%-m'`)).toEqual([
      { login: 'ann-m' },
    ]);
    expect(await apply(list(ann()))).toEqual({ removed: [], warnings: [] });
    // A file that lists them again restores them.
    await apply(list(`${ann()}, ${ben()}`));
    expect(await status(token('ben-m'))).toBe(200);
  });

  test('a changed token replaces the old one, and its running update is cancelled', async () => {
    await apply(list(`${ann()}, ${ben()}`));
    const [auth, owner] = [`token ${token('ben-m')}`, `token ${token('ann-m')}`];
    const made = `/api/stacks/${org}/proj`;
    await ok(app.call('POST', made, { auth, body: { stackName: 'dev' } }));
    const stack = { auth, path: `${made}/dev`, organization: org, project: 'proj', stack: 'dev' };
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'r0', stack)));
    const file = path.join(directory, 'changed.yaml');
    writeFileSync(file, list(`${ann()}, ${ben(token('ben-2'))}`));
    const config = { ...app.context.config, bootstrapFile: file };
    await bootstrapAtStart({ ...app.context, config });
    expect([await status(token('ben-m')), await status(token('ben-2'))]).toEqual([401, 200]);
    expect((await append(app, update, creation(7, 'late', stack))).status).toBe(403);
    const [row] = await query(app, 'select status, end_reason from updates where id = $1', [update.id]);
    expect(row).toEqual({ status: 'cancelled', end_reason: 'token-revoked' });
    expect(await exportedNames(app, { ...stack, auth: owner })).toEqual(['r0']);
  });

  test('without manage, a changed token is added and the old one is reported', async () => {
    const plain = (secret: string) =>
      `organizations: [{ name: plain, members: [{ login: pat, role: admin, token: ${secret} }] }]`;
    await apply(plain(token('pat')));
    const { removed, warnings } = await apply(plain(token('pat-2')));
    expect(removed).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/token of pat .*still works.*holdfast admin revoke [0-9a-f-]{36}$/),
    ]);
    expect([await status(token('pat')), await status(token('pat-2'))]).toEqual([200, 200]);
    const managed = await apply(`manage: true\n${plain(token('pat-2'))}`);
    expect(managed.removed).toContainEqual(expect.stringMatching(/of pat was revoked/));
    expect([await status(token('pat')), await status(token('pat-2'))]).toEqual([401, 200]);
  });

  test('undoes what other files have created, and nothing else', async () => {
    await apply(`organizations:
  - { name: gone, members: [{ login: guy, role: member, token: ${token('guy')}, siteAdmin: true }] }
  - { name: kept, members: [{ login: kay, role: admin, token: ${token('kay')}, siteAdmin: true }] }`);
    await app.createUser('gone', 'viewer', 'byhand');
    await apply(
      `{ manage: true, organizations: [{ name: kept, members: [{ login: kay, role: admin, token: ${token('kay')}, siteAdmin: true }] }] }`,
    );
    expect([await membersOf('gone'), await membersOf('kept')]).toEqual([['byhand'], ['kay']]);
    expect([await status(token('guy')), await status(token('kay'))]).toEqual([401, 200]);
    expect(await query(app, 'select login from users where site_admin')).toEqual([{ login: 'kay' }]);
  });

  test('old and new file, applied many times at once, end in the state of one of them', async () => {
    const files = [
      list(`${ann()}, ${ben(token('ben-x'))}`),
      list(`${ann()}, ${ben(token('ben-y'))}, { login: new-m, role: viewer }`),
    ];
    for (let round = 0; round < 3; round++) {
      await Promise.all([0, 1, 0, 1, 0, 1].map((at) => apply(files[at] as string)));
      const now = [await status(token('ben-x')), await status(token('ben-y')), (await membersOf(org)).length];
      expect([
        [200, 401, 2],
        [401, 200, 3],
      ]).toContainEqual(now);
    }
    // The replica that starts last wins, even if its token was removed in between.
    await apply(files[0] as string);
    await apply(files[1] as string);
    expect([await status(token('ben-x')), await status(token('ben-y'))]).toEqual([401, 200]);
  });

  test('with a revision is not undone by an older one', async () => {
    await using own = await createTestApp();
    const applyHere = (content: string) => applyBootstrap(own.context.db, read(content));
    await applyHere(`revision: 7\n${list(ann())}`);
    for (const older of [`revision: 6\n${list(`${ann()}, ${ben()}`)}`, list(`${ann()}, ${ben()}`)]) {
      const { warnings } = await applyHere(older);
      expect(warnings).toEqual([expect.stringMatching(/skipped: revision 7/)]);
    }
    expect(await query(own, `select 1 from users where login = 'ben-m'`)).toEqual([]);
    await applyHere(`revision: 8\n${list(`${ann()}, ${ben()}`)}`);
    expect(await query(own, `select 1 from users where login = 'ben-m'`)).toHaveLength(1);
  });

  test('a token revoked by an operator stays revoked; a deactivated user gets no token', async () => {
    await apply(list(`${ann()}, ${ben(token('ben-r'))}`));
    await query(app, `update api_tokens set revoked_at = now() where token_hash = sha256($1::bytea)`, [token('ben-r')]);
    await query(app, `update users set deactivated_at = now() where login = 'ann-m'`);
    const { warnings } = await apply(list(`${ann(token('ann-new'))}, ${ben(token('ben-r'))}`));
    expect(warnings).toEqual([
      expect.stringMatching(/ann-m is deactivated/),
      expect.stringMatching(/token of ben-m was revoked by an operator/),
      expect.stringMatching(/managed has no admin/),
    ]);
    await query(app, `update users set deactivated_at = null where login = 'ann-m'`);
    expect([await status(token('ben-r')), await status(token('ann-new'))]).toEqual([401, 401]);
    await apply(list(ann(token('ann-new'))));
    expect(await status(token('ann-new'))).toBe(200);
  });

  test.each([
    ['no members', list('')],
    ['members left out', `organizations: [{ name: ${org}, manage: true }]`],
    ['no members, managed from the top', `{ manage: true, organizations: [{ name: ${org}, members: [] }] }`],
    ['no organizations', '{ manage: true, organizations: [] }'],
  ])('is rejected with %s, unless that is allowed', (_, content) => {
    expect(problemOf(content)).toMatch(/remove everyone/);
  });

  test('with allowNoMembers empties one organization and no other', async () => {
    await app.createUser('emptied', 'admin', 'last');
    await apply(
      `{ manage: true, organizations: [{ name: emptied, allowNoMembers: true }, { name: ${org}, manage: false }] }`,
    );
    expect(await membersOf('emptied')).toEqual([]);
  });

  test.each([
    ['two roles', list(`{ login: ann, role: admin }, { login: ann, role: viewer }`), /ann has two roles/],
    ['an organization twice', `organizations: [{ name: acme }, { name: acme }]`, /"acme" is listed twice/],
    [
      'a contradictory site admin',
      `organizations: [{ name: a, members: [{ login: ann, role: admin, siteAdmin: true }] }, { name: b, members: [{ login: ann, role: admin, siteAdmin: false }] }]`,
      /ann is a site admin in one place/,
    ],
    [
      'the first token of the documentation',
      list('{ login: ann, role: admin, token: at-least-16-characters-of-randomness }'),
      /one from an example/,
    ],
    [
      'the other token of the documentation',
      list('{ login: ann, role: admin, token: another-long-random-string }'),
      /one from an example/,
    ],
    [
      'a token of one character',
      list('{ login: ann, role: admin, token: "0000000000000000000" }'),
      /too few different/,
    ],
    ['a token that counts', list('{ login: ann, role: admin, token: "abcdefghijklmnop" }'), /a sequence/],
  ])('is rejected with %s', (_, content, message) => {
    const problem = problemOf(content);
    expect(problem).toMatch(message);
    for (const secret of ['at-least-16', 'another-long', '00000', 'abcdefgh']) expect(problem).not.toContain(secret);
  });
});

test('no document, example or compose file has a token that would be accepted', () => {
  const root = path.join(import.meta.dirname, '../..');
  const texts = ['README.md', 'docs/administration.md', '.env.example', 'docker-compose.yml'].map((name) =>
    readFileSync(path.join(root, name), 'utf8'),
  );
  const tokens = texts.flatMap((text) =>
    [...text.matchAll(/^\s*token: (\S{16,})$/gm)].map(([, found]) => found as string),
  );
  expect(tokens.length).toBeGreaterThan(0);
  for (const found of tokens) expect(describeWeakToken(found)).not.toBeNull();
});

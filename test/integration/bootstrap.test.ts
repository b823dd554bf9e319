import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { applyBootstrap, BootstrapError, readBootstrapFile } from '../../src/shared/identity/bootstrap.ts';
import { ok } from '../support/state.ts';
import { query } from '../support/steps.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

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

  test('makes organizations, users, roles and tokens', async () => {
    await apply(file);
    expect(await rolesOf(token('ann'))).toEqual({ login: 'ann', siteAdmin: true, organizations: ['acme'] });
    expect(await rolesOf(token('ben'))).toEqual({ login: 'ben', siteAdmin: false, organizations: ['acme'] });
    const create = (secret: string) =>
      app.call('POST', '/api/stacks/acme/proj', { auth: `token ${secret}`, body: { stackName: secret } });
    expect((await create(token('ann'))).status).toBe(200);
    expect((await create(token('ben'))).status).toBe(403);
    expect(await query(app, `select 1 from organizations where name = 'empty'`)).toHaveLength(1);
  });

  test('again, by many replicas at once, changes nothing', async () => {
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

  test('sets roles that differ, and removes nothing', async () => {
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

  test('a token that belongs to somebody else is refused, as a whole, without quoting it', async () => {
    await apply(file);
    const clash = `organizations: [{ name: clash, members: [{ login: eve, role: admin, token: ${token('ann')} }] }]`;
    const applying = apply(clash);
    await expect(applying).rejects.toThrow(BootstrapError);
    await expect(applying).rejects.toThrow(/eve/);
    await expect(applying).rejects.not.toThrow(token('ann'));
    expect(await query(app, `select 1 from organizations where name = 'clash'`)).toEqual([]);
    expect((await rolesOf(token('ann'))).login).toBe('ann');
  });

  test('a token that was revoked stays so', async () => {
    await apply(`organizations: [{ name: late, members: [{ login: roy, role: admin, token: ${token('roy')} }] }]`);
    await query(
      app,
      `update api_tokens set revoked_at = now() where user_id = (select id from users where login = 'roy')`,
    );
    await apply(`organizations: [{ name: late, members: [{ login: roy, role: admin, token: ${token('roy')} }] }]`);
    expect((await app.call('GET', '/api/user', { auth: `token ${token('roy')}` })).status).toBe(401);
  });

  test('JSON is taken as well', async () => {
    const json = JSON.stringify({ organizations: [{ name: 'json', members: [] }] });
    await applyBootstrap(app.context.db, read(json, 'bootstrap.json'));
    expect(await query(app, `select 1 from organizations where name = 'json'`)).toHaveLength(1);
  });
});

describe('a file that is wrong', () => {
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
    ['an invalid login', member(`{ login: "a/b", role: admin, token: ${secret} }`), '"a/b"'],
  ])('%s: the message names the setting, the file and the place, and no token', (_name, content, place) => {
    const problem = problemOf(content);
    expect(problem).toContain('HOLDFAST_BOOTSTRAP');
    expect(problem).toContain(place);
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

  test('all problems come at once, a bounded number of them', () => {
    const members = Array.from({ length: 40 }, () => '{ login: 1, role: no }').join(', ');
    const problem = problemOf(`organizations: [{ name: acme, members: [${members}] }]`);
    expect(problem).toContain('/organizations/0/members/0/login');
    expect(problem).toContain('/organizations/0/members/1/');
    expect(problem.length).toBeLessThan(3_000);
  });

  test('a file that is not there is said to be so', () => {
    expect(() => readBootstrapFile(path.join(directory, 'none.yaml'))).toThrow(
      /HOLDFAST_BOOTSTRAP.*none\.yaml.*ENOENT/,
    );
  });
});

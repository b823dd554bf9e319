import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { stringify } from 'yaml';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { documentSchema } from '../../src/cli/configuration/document.ts';
import { kindNames } from '../../src/cli/configuration/kinds/kind.ts';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { assertOutput } from '../support/outputs.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { makeKey } from '../support/test-issuer.ts';
import { append, complete } from '../support/update-calls.ts';

const app = testApp();
let url: string;
let folder: string;
let stack: TestStack;
let jwk: object;
let logins: { ada: string; bob: string };

beforeAll(async () => {
  ({ jwk } = await makeKey('ES256', 'one'));
  url = await app.app.listen({ host: '127.0.0.1', port: 0 });
  folder = mkdtempSync(path.join(tmpdir(), 'configuration-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  stack = await createStack(app);
  const { organization } = stack;
  await query(
    app,
    'update users set site_admin = true where id = (select user_id from api_tokens where token_hash = $1)',
    [hashToken(stack.auth.slice(6))],
  );
  logins = {
    ada: (await person(app, organization, 'member')).login,
    bob: (await person(app, organization, 'viewer')).login,
  };
});

type Declared = Record<string, unknown> & { kind: string; name: string; spec?: object };

function write(...documents: (Declared | string)[]): string {
  const file = path.join(folder, 'configuration.yaml');
  const written = documents.map((each) => {
    if (typeof each === 'string') return each;
    const { kind, labels, name, spec } = each;
    const metadata = { name, ...(kind === 'Organization' ? {} : { organization: stack.organization }), labels };
    return stringify({ apiVersion: 'holdfast/v1', kind, metadata, spec });
  });
  writeFileSync(file, written.join('---\n'));
  return file;
}

async function run(...words: string[]) {
  const printed = { log: '', error: '' };
  const spies = (['log', 'error'] as const).map((stream) =>
    jest.spyOn(console, stream).mockImplementation((text: unknown) => {
      printed[stream] += `${text}\n`;
    }),
  );
  try {
    const code = await runCommandLine(
      [...words, '--url', url, ...(words.includes('--token') ? [] : ['--token', stack.auth.slice(6)])],
      () => {
        throw new Error('No settings are needed');
      },
    );
    return { code, stdout: printed.log, stderr: printed.error };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

const plan = async (file: string, ...words: string[]) =>
  parsed('plan', await done(run('plan', '-f', file, '--json', ...words)));
const parsed = (name: string, { stdout }: { stdout: string }) => {
  assertOutput([name], stdout);
  return JSON.parse(stdout);
};
const apply = (file: string, ...words: string[]) => run('apply', '-f', file, '--yes', ...words);

async function done(ran: ReturnType<typeof run>) {
  const result = await ran;
  expect(result).toMatchObject({ code: 0, stderr: '' });
  return result;
}

const call = (method: string, below: string, body?: object) =>
  ok(app.call(method, `/api/orgs/${stack.organization}/${below}`, { auth: stack.auth, ...(body ? { body } : {}) }));

const operate = (method: string, below: string, body?: object) =>
  ok(app.call(method, `/api/operator/${below}`, { auth: stack.auth, ...(body ? { body } : {}) }));

interface KindCase {
  readonly kind: (typeof kindNames)[number];
  readonly name?: () => string;
  /** Others that must be there. */
  readonly with?: () => Declared[];
  readonly one: () => object;
  readonly other: () => object;
  readonly fields: readonly string[];
  /** A change by somebody else. */
  readonly elsewhere?: (object: string) => Promise<unknown>;
  /** The kind is not deleted by a configuration. */
  readonly stays?: true;
}

const team = (): Declared => ({ kind: 'Team', name: 'blue', spec: {} });
const policy = (branch: string) => ({
  decision: 'allow',
  tokenType: 'team',
  teamName: 'blue',
  rules: { sub: [`repo:acme:ref:${branch}`] },
});

const cases: readonly KindCase[] = [
  {
    kind: 'Organization',
    name: () => stack.organization,
    one: () => ({ decryptByRole: false }),
    other: () => ({ decryptByRole: true, defaultPermissions: ['preview', 'decrypt'] }),
    fields: ['decryptByRole', 'defaultPermissions'],
    elsewhere: () => call('PATCH', 'access-policy', { defaultPermissions: ['read'] }),
    stays: true,
  },
  {
    kind: 'Quota',
    one: () => ({ stacks: 50 }),
    other: () => ({ stacks: 60, updates: 0 }),
    fields: ['stacks', 'updates'],
    elsewhere: (name) => operate('PUT', `organizations/${name}/quota`, { stacks: 70 }),
  },
  {
    kind: 'User',
    name: () => `eve-${stack.organization}`,
    one: () => ({}),
    other: () => ({ siteAdmin: true, active: false }),
    fields: ['siteAdmin', 'active'],
    elsewhere: (login) => operate('PATCH', `users/${login}`, { siteAdmin: true }),
    stays: true,
  },
  {
    kind: 'Member',
    name: () => 'carol',
    one: () => ({ role: 'viewer' }),
    other: () => ({ role: 'member' }),
    fields: ['role'],
    elsewhere: () => call('POST', 'invitations', { login: 'carol', role: 'admin' }),
  },
  {
    kind: 'Role',
    one: () => ({ description: 'Releases', permissions: ['write'] }),
    other: () => ({ permissions: ['write', 'decrypt'] }),
    fields: ['permissions'],
    elsewhere: (role) => call('PATCH', `roles/${role}`, { description: 'other' }),
  },
  {
    kind: 'Team',
    one: () => ({ displayName: 'One', members: [logins.ada] }),
    other: () => ({ description: 'two', members: [logins.bob], admins: [logins.ada] }),
    fields: ['description', 'members', 'admins'],
    elsewhere: (name) => call('PATCH', `teams/${name}`, { newDescription: 'other' }),
  },
  {
    kind: 'Issuer',
    with: () => [team()],
    one: () => ({ url: 'https://ci.example', jwks: { keys: [jwk] }, policies: [policy('main')] }),
    other: () => ({ url: 'https://ci.example', replay: 'within-life', policies: [policy('main'), policy('next')] }),
    fields: ['replay', 'policies'],
    elsewhere: (id) => call('PATCH', `oidc/issuers/${id}`, { maxExpiration: 60 }),
  },
  {
    kind: 'Grant',
    with: () => [team(), { kind: 'Role', name: 'Releaser', spec: { permissions: ['write'] } }],
    one: () => ({ team: 'blue', permissions: ['write'], stacks: 'shop/*' }),
    other: () => ({ team: 'blue', role: 'releaser', stacks: 'shop/*', tag: { name: 'env' } }),
    fields: ['role', 'tag'],
    elsewhere: (id) => call('DELETE', `grants/${id}`),
  },
  {
    kind: 'UpdateRule',
    one: () => ({ rule: 'change-limit', project: 'shop', settings: { changes: 5 } }),
    other: () => ({ rule: 'change-limit', project: 'shop', settings: { changes: 9 }, note: 'more' }),
    fields: ['settings', 'note'],
    elsewhere: (id) =>
      call('PUT', `update-rules/${id}`, { kind: 'change-limit', project: 'shop', settings: { changes: 7 } }),
  },
  {
    kind: 'RetentionRule',
    one: () => ({ rule: 'keep-events', settings: { days: 30 } }),
    other: () => ({ rule: 'keep-events', settings: { days: 60 } }),
    fields: ['settings'],
    elsewhere: (id) => call('DELETE', `update-rules/${id}`),
  },
  {
    kind: 'PolicyGroup',
    one: () => ({ stacks: [] }),
    other: () => ({
      stacks: [`${stack.project}/${stack.stack}`],
      packs: [{ name: 'pack', version: '1.0.0', config: { 'no-buckets': { allowed: [] } } }],
    }),
    fields: ['stacks', 'packs'],
    elsewhere: (name) =>
      call('PATCH', `policygroups/${name}`, { addStack: { name: stack.stack, routingProject: stack.project } }),
  },
  {
    kind: 'Webhook',
    one: () => ({ url: 'https://hooks.example/a', filters: ['stack_created'] }),
    other: () => ({ url: 'https://hooks.example/b', filters: ['stack_created', 'stack_deleted'] }),
    fields: ['url', 'filters'],
    elsewhere: (name) => call('PATCH', `hooks/${name}`, { active: false }),
  },
  {
    kind: 'StackWebhook',
    name: () => `${stack.project}/${stack.stack}/ci`,
    one: () => ({ url: 'https://hooks.example/a', filters: ['update_failed'] }),
    other: () => ({ url: 'https://hooks.example/b', filters: ['update_failed', 'update_succeeded'] }),
    fields: ['url', 'filters'],
    elsewhere: () => ok(app.call('PATCH', `${stack.path}/hooks/ci`, { auth: stack.auth, body: { active: false } })),
  },
];

test('every kind has a case', () => {
  expect(cases.map(({ kind }) => kind)).toEqual([...kindNames]);
});

describe.each(cases)('$kind', ({ elsewhere, fields, kind, name = () => 'one', one, other, stays, with: others }) => {
  const labels = { from: 'git' };
  const declared = (spec: object): string =>
    write(...(others?.() ?? []).map((each) => ({ ...each, labels })), { kind, name: name(), labels, spec });
  const change = (action: string) => expect.objectContaining({ action, kind, name: name() });

  test('is created, changed, left alone, exported and deleted', async () => {
    const packs = new PolicyCalls(app, stack);
    if (kind === 'PolicyGroup') await packs.publish();
    expect((await plan(declared(one()))).changes).toContainEqual(change(kind === 'Organization' ? 'change' : 'create'));
    await done(apply(declared(one())));
    expect(await plan(declared(one()))).toMatchObject({ changes: [] });
    const planned = await plan(declared(other()));
    expect(planned.changes).toEqual([change('change')]);
    expect(planned.changes[0].fields.map(({ field }: { field: string }) => field)).toEqual(
      expect.arrayContaining([...fields]),
    );
    await done(apply(declared(other())));
    expect(await plan(declared(other()))).toMatchObject({ changes: [] });
    // What was exported declares the same, even if the notes about it are lost.
    const exported = path.join(folder, 'exported.yaml');
    await done(run('export-config', '--organization', stack.organization, '--to', exported));
    expect(await plan(exported)).toMatchObject({ changes: [], counts: { unchanged: expect.any(Number) } });
    await query(
      app,
      'delete from managed_objects where organization_id = (select id from organizations where name = $1)',
      [stack.organization],
    );
    expect(await plan(exported)).toMatchObject({ changes: [] });
    await done(apply(declared(other())));
    if (stays) return;
    const rest = write(...(others?.() ?? []).map((each) => ({ ...each, labels })));
    const prune = ['--organization', stack.organization, '--prune', '-l', 'from=git'];
    expect(await plan(rest, ...prune)).toMatchObject({ counts: { create: 0, change: 0, delete: 1 } });
    await done(apply(rest, ...prune));
    expect(await plan(rest, ...prune)).toMatchObject({ changes: [] });
    expect((await plan(declared(other()))).changes).toEqual([change('create')]);
  });

  test('is left alone if it has changed since the plan', async () => {
    if (kind === 'PolicyGroup') await new PolicyCalls(app, stack).publish();
    await done(apply(declared(one())));
    const [record] = await query<{ object: string }>(
      app,
      'select object from managed_objects where kind = $1 and name = $2 and organization_id = (select id from organizations where name = $3)',
      [kind, name(), stack.organization],
    );
    const file = declared(other());
    const real = globalThis.fetch;
    let isChanged = false;
    const spy = jest.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      // The first write comes after the plan; the read before it must see what somebody else has done.
      if (!isChanged && spy.mock.calls.length > reads) {
        isChanged = true;
        await elsewhere?.(record?.object ?? '');
      }
      return real(input, init);
    });
    let reads = Number.POSITIVE_INFINITY;
    try {
      await done(run('plan', '-f', file));
      reads = spy.mock.calls.length;
      spy.mockClear();
      const refused = await apply(file);
      expect([isChanged, refused.code, refused.stderr]).toEqual([true, 1, expect.stringContaining(`${kind} `)]);
    } finally {
      spy.mockRestore();
    }
  });
});

test('pages say which teams and rules a configuration declares', async () => {
  const settings = { changes: 5 };
  await call('POST', 'teams/pulumi', { name: 'by-hand' });
  await call('POST', 'update-rules', { kind: 'lock-wait', settings: { seconds: 5 } });
  await done(
    apply(
      write({ kind: 'Team', name: 'one' }, { kind: 'UpdateRule', name: 'x', spec: { rule: 'change-limit', settings } }),
    ),
  );
  const { organization } = stack;
  const read = async (procedure: string) =>
    (await ask(app, stack.auth.replace('token ', ''), procedure, { organization })).data.items;
  expect(await read('teams.list')).toMatchObject([
    { name: 'by-hand', isManaged: false },
    { name: 'one', isManaged: true },
  ]);
  expect(await read('rules.list')).toMatchObject([
    { kind: 'change-limit', isManaged: true },
    { kind: 'lock-wait', isManaged: false },
  ]);
  const declared = async (object: string) =>
    (await ask(app, stack.auth.replace('token ', ''), 'access.declaration', { organization, kind: 'Team', object }))
      .data;
  const applied = { appliedBy: expect.any(String), appliedAt: expect.stringMatching(/^20/) };
  expect(await declared('one')).toEqual({ declaration: { name: 'one', labels: {}, ...applied } });
  expect(await declared('by-hand')).toEqual({ declaration: null });
});

describe('wrong documents', () => {
  const head = (kind: string, name = 'x') =>
    `apiVersion: holdfast/v1\nkind: ${kind}\nmetadata: { name: ${name}, organization: ORG }\n`;

  test.each<[string, string, string]>([
    [
      'a field that there is not',
      `${head('Team')}spec:\n  membres: [ada]\n`,
      '5:3: there is no field "membres" here: did you mean "members"?',
    ],
    [
      'a field beside the spec',
      `${head('Team')}spce: {}\n`,
      '4:1: there is no field "spce" here: did you mean "spec"?',
    ],
    ['another kind', head('Taem'), '2:1: kind is one of Organization, Quota, User, Member'],
    ['another version', head('Team').replace('v1', 'v2'), '1:1: apiVersion is "holdfast/v1"'],
    ['a missing field', `${head('Member')}spec: {}\n`, '4:1: role is missing'],
    ['a missing name', `${head('Team').replace('name: x, ', '')}`, '3:1: name is missing'],
    [
      'a wrong value',
      `${head('Role')}spec:\n  permissions:\n    - read\n    - wriet\n`,
      '7:7: permissions.1 is one of read',
    ],
    [
      'a wrong setting of a rule',
      `${head('UpdateRule')}spec:\n  rule: lock-wait\n  settings: { second: 3 }\n`,
      '6:15: there is no field "second" here: did you mean "seconds"?',
    ],
    [
      'a rule that a schema cannot express',
      `${head('Issuer')}spec:\n  url: https://ci.example\n  policies: [{ decision: allow, tokenType: organization, rules: {} }]\n`,
      '4:1: A policy that allows needs a rule',
    ],
    ['a quota without limits', `${head('Quota')}spec: { stacks: null }\n`, '4:1: A quota sets at least one limit'],
    [
      'a webhook of no stack',
      `${head('StackWebhook')}spec: { url: 'https://hooks.example' }\n`,
      '3:13: the name of a StackWebhook has the form project/stack/name',
    ],
    ['no valid YAML', `${head('Team')}spec: [\n`, '5:1: Flow sequence'],
    ['a key twice', `${head('Team')}kind: Role\n`, '4:1: Map keys must be unique'],
    ['an object twice', `${head('Team')}---\n${head('Team')}`, '5:1: Team ORG/x is declared twice: first at FILE:1:1'],
    [
      'one object as two',
      `${head('Role', 'one')}spec: { permissions: [read] }\n---\n${head('Role', 'ONE')}spec: { permissions: [read] }\n`,
      '6:1: Role ORG/ONE is the same object as Role ORG/one at FILE:1:1',
    ],
    [
      'a secret that is not set',
      `${head('Webhook')}spec: { url: 'https://hooks.example', secret: { env: NO_SUCH_VARIABLE } }\n`,
      '1:1: the variable NO_SUCH_VARIABLE is not set',
    ],
    [
      'a secret as it is',
      `${head('Webhook')}spec: { url: 'https://hooks.example', secret: planted-secret }\n`,
      '4:39: secret is not valid: object or null',
    ],
    [
      'a team that there is not',
      `${head('Team', 'blue')}---\n${head('Grant')}spec:\n  team: bleu\n  permissions: [read]\n`,
      '9:3: Grant ORG/x refers to Team "bleu", which is neither declared nor present: did you mean "blue"?',
    ],
  ])('%s is refused with its line', async (_, document, sentence) => {
    const file = write(document.replaceAll('ORG', stack.organization));
    const { code, stderr, stdout } = await run('plan', '-f', file);
    const expected = `${file}:${sentence}`.replaceAll('ORG', stack.organization).replaceAll('FILE', file);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(expected)]);
    expect(stderr).not.toContain('planted-secret');
  });

  test('all of a folder are reported at once', async () => {
    write(`${head('Taem')}---\n${head('Team')}spec: { a: 1 }\n`);
    const { stderr } = await run('plan', '-f', folder);
    expect(stderr).toContain('kind is one of');
    expect(stderr).toContain('there is no field "a"');
  });
});

test('a plan shows what changes, and says so by its exit code', async () => {
  const file = write({ kind: 'Team', name: 'blue', spec: { description: 'one', members: [logins.ada] } });
  const created = await run('plan', '-f', file, '--detailed-exitcode');
  expect(created).toEqual({
    code: 2,
    stderr: '',
    stdout: `+ Team ${stack.organization}/blue\n    description: "one"\n    members: ["${logins.ada}"]\nPlan: 1 to create, 0 to change, 0 to delete, 0 unchanged.\n`,
  });
  await done(apply(file));
  expect(await run('plan', '-f', file, '--detailed-exitcode')).toEqual({
    code: 0,
    stderr: '',
    stdout: 'No changes: 1 object is as declared.\n',
  });
  const changed = write({ kind: 'Team', name: 'blue', spec: { description: 'two', members: [logins.bob] } });
  expect((await run('plan', '-f', changed)).stdout).toBe(
    `~ Team ${stack.organization}/blue\n    description: "one" → "two"\n    members: - "${logins.ada}", + "${logins.bob}"\nPlan: 0 to create, 1 to change, 0 to delete, 0 unchanged.\n`,
  );
  const asked = await run('apply', '-f', changed);
  expect([asked.code, asked.stderr]).toEqual([1, 'holdfast: There is no terminal to ask at: give --yes\n']);
});

test('a pipe gets a long plan whole', async () => {
  const description = 'd'.repeat(4_000);
  const file = write(
    ...Array.from({ length: 500 }, (_, at) => ({ kind: 'Team', name: `t${at}`, spec: { description } })),
  );
  const words = ['plan', '-f', file, '--json', '--url', url, '--token', stack.auth.replace('token ', '')];
  const child = spawn(process.execPath, [holdfastProgram, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(JSON.parse(await text(child.stdout)).counts).toMatchObject({ create: 500 });
});

test('a second run changes nothing and leaves no event', async () => {
  const file = write({ kind: 'Team', name: 'blue', labels: { from: 'git' }, spec: { members: [logins.ada] } });
  await done(apply(file));
  const count = async () => (await listEvents(app, stack.organization)).length;
  const before = await count();
  expect((await done(apply(file))).stdout).toBe('No changes: 1 object is as declared.\n');
  expect(await count()).toBe(before);
});

test('many grants and members are changed by few calls, and of a refused batch all but the refused ones', async () => {
  const { organization } = stack;
  const people = await Promise.all(Array.from({ length: 12 }, () => person(app, organization, 'member')));
  const labels = { from: 'git' };
  const team: Declared = { kind: 'Team', name: 'blue', labels, spec: { members: people.map(({ login }) => login) } };
  const grants = (permission: string, count = 150) =>
    Array.from({ length: count }, (_, at) => ({
      ...{ kind: 'Grant', name: `grant-${at}`, labels },
      spec: { team: 'blue', permissions: [permission], stacks: `p${at}/*` },
    }));
  const calls = jest.spyOn(globalThis, 'fetch');
  const changes = () => calls.mock.calls.filter(([, init]) => init?.method !== 'GET').length;
  try {
    await done(apply(write(team, ...grants('write'))));
    // The team, its members, grants twice, and what is declared twice.
    expect(changes()).toBeLessThanOrEqual(6);
    calls.mockClear();
    await done(apply(write(team, ...grants('read'))));
    expect(changes()).toBeLessThanOrEqual(3);
    expect(await plan(write(team, ...grants('read')))).toMatchObject({ changes: [] });
    calls.mockClear();
    await done(apply(write(team), '--prune', '-l', 'from=git'));
    expect(changes()).toBeLessThanOrEqual(3);
  } finally {
    calls.mockRestore();
  }
  const some = [...grants('read', 3), { kind: 'Grant', name: 'wrong', spec: { token: 'none', permissions: ['read'] } }];
  const refused = await apply(write(team, ...some));
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^holdfast: Grant .*\/wrong: .*\n$/)]);
  expect((await plan(write(team, ...some))).counts).toMatchObject({ create: 1, unchanged: 4 });
});

test('what is declared for an invited user waits until they accept, and all else is applied', async () => {
  const login = `dana-${stack.organization}`;
  const others = [logins.ada, logins.bob];
  const documents: Declared[] = [
    { kind: 'Member', name: login, spec: { role: 'member' } },
    { kind: 'Team', name: 'blue', spec: { members: [login, logins.bob], admins: [logins.ada] } },
    {
      kind: 'Issuer',
      name: 'ci',
      spec: {
        ...{ url: 'https://ci.example', jwks: { keys: [jwk] } },
        policies: [
          { decision: 'deny', tokenType: 'personal', userLogin: login, rules: { sub: ['*'] } },
          { decision: 'allow', tokenType: 'organization', rules: { sub: ['repo:acme'] } },
        ],
      },
    },
    { kind: 'Grant', name: 'of-dana', spec: { user: login, permissions: ['write'] } },
    { kind: 'Grant', name: 'of-bob', spec: { user: logins.bob, permissions: ['write'] } },
    { kind: 'UpdateRule', name: 'limit', spec: { rule: 'change-limit', settings: { changes: 5 } } },
  ];
  const file = write(...documents);
  const waits = (kind: string, name: string) =>
    `? ${kind} ${stack.organization}/${name} waits until ${login} accepts the invitation\n`;
  const all = [waits('Team', 'blue'), waits('Issuer', 'ci'), waits('Grant', 'of-dana')];
  const applied = await done(apply(file));
  for (const each of all) expect(applied.stdout).toContain(each);
  expect(applied.stdout).toContain('Applied 5 of 5 changes.');
  const members = async () =>
    (await call('GET', 'teams/blue')).json.members.map(({ githubLogin }: { githubLogin: string }) => githubLogin);
  expect((await members()).toSorted()).toEqual(others.toSorted());
  expect((await call('GET', 'update-rules')).json.rules).toMatchObject([{ kind: 'change-limit' }]);

  const { changes, counts, waiting } = await plan(file, '--detailed-exitcode');
  expect([changes, counts.unchanged]).toEqual([[], 3]);
  expect(waiting).toContainEqual({
    ...{ kind: 'Grant', organization: stack.organization, name: 'of-dana', members: [login] },
  });

  await call('DELETE', `invitations/${login}`);
  await app.createUser(stack.organization, 'member', login);
  expect((await plan(file)).changes).toMatchObject([
    { kind: 'Team', action: 'change' },
    { kind: 'Issuer', action: 'change' },
    { kind: 'Grant', action: 'create', name: 'of-dana' },
  ]);
  expect((await done(apply(file))).stdout).not.toContain('waits');
  expect((await members()).toSorted()).toEqual([...others, login].toSorted());
  expect(await plan(file)).toMatchObject({ changes: [], counts: { unchanged: 6 } });
});

test('a site admin creates an organization with all that is in it, and deletes it only with a flag, and only without stacks', async () => {
  const name = `${stack.organization}-new`;
  const labels = { from: 'git' };
  stack = { ...stack, organization: name };
  const all = write(
    { kind: 'Organization', name, labels, spec: { decryptByRole: false } },
    { kind: 'Quota', name: 'limits', labels, spec: { stacks: 1 } },
    { kind: 'User', name: `${name}-user`, labels },
    { kind: 'Member', name: `${name}-user`, labels, spec: { role: 'viewer' } },
    { kind: 'Team', name: 'blue', labels },
  );
  expect((await plan(all)).counts).toMatchObject({ create: 5, change: 0 });
  await done(apply(all));
  expect((await plan(all)).changes).toEqual([]);
  await ok(app.call('POST', `/api/stacks/${name}/proj`, { auth: stack.auth, body: { stackName: 'dev' } }));
  expect(
    (await app.call('POST', `/api/stacks/${name}/proj`, { auth: stack.auth, body: { stackName: 'b' } })).status,
  ).toBe(409);

  const nothing = write('');
  const prune = ['--organization', name, '--prune', '-l', 'from=git'];
  expect((await run('plan', '-f', nothing, ...prune)).stderr).toContain('cannot be deleted: it is an organization');
  expect(
    (await apply(write({ kind: 'Team', name: 'blue', labels }), ...prune, '--delete-organizations')).stderr,
  ).toContain(`the organization of Team ${name}/blue would be deleted`);
  const refused = await apply(write(''), ...prune, '--delete-organizations');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('still has 1 stacks')]);
  await ok(app.call('DELETE', `/api/stacks/${name}/proj/dev`, { auth: stack.auth }));
  await query(app, 'delete from stacks where deleted_at is not null');
  await done(apply(nothing, ...prune, '--delete-organizations'));
  expect((await app.call('GET', `/api/orgs/${name}/members`, { auth: stack.auth })).status).toBe(404);
});

test('only a site admin declares a new organization, limits and users, and exports them', async () => {
  const { auth } = await person(app, stack.organization, 'admin');
  const admin = ['--token', auth.slice(6)];
  for (const [document, sentence] of [
    [{ kind: 'User', name: 'frank' }, 'Only site admins may do this'],
    [{ kind: 'Quota', name: 'x', spec: { stacks: 1 } }, 'Only site admins may do this'],
    [{ kind: 'Organization', name: `${stack.organization}-none` }, 'There is no organization'],
  ] as const)
    expect((await apply(write(document), ...admin)).stderr).toContain(sentence);
  const exported = await done(run('export-config', '--organization', stack.organization, ...admin));
  expect(exported.stdout).not.toContain('kind: User');
  expect((await done(run('export-config', '--organization', stack.organization))).stdout).toContain('kind: User');
});

test('pruning deletes only what was applied with the labels and is no longer declared', async () => {
  const prune = ['--organization', stack.organization, '--prune', '-l', 'from=git'];
  const declare = (name: string, from: string): Declared => ({ kind: 'Team', name, labels: { from } });
  await call('POST', 'teams/pulumi', { name: 'by-hand' });
  await done(apply(write(declare('one', 'git'), declare('two', 'git'), declare('other', 'elsewhere'))));
  await done(apply(write(declare('one', 'git')), ...prune));
  const names = async () => (await call('GET', 'teams')).json.teams.map(({ name }: { name: string }) => name);
  expect(await names()).toEqual(['by-hand', 'one', 'other']);
  const file = write({ kind: 'Team', name: 'one' });
  for (const [words, sentence] of [
    [['--prune'], '--prune needs --selector'],
    [prune, 'lacks the labels of --selector'],
  ] as const)
    expect([(await apply(file, ...words)).stderr, await names()]).toEqual([
      expect.stringContaining(sentence),
      ['by-hand', 'one', 'other'],
    ]);
});

test('a field that cannot change is refused before anything is done', async () => {
  const declare = (url: string): string => write({ kind: 'Issuer', name: 'ci', spec: { url, jwks: { keys: [jwk] } } });
  await done(apply(declare('https://ci.example')));
  const { code, stderr } = await apply(declare('https://other.example'));
  expect([code, stderr]).toEqual([1, expect.stringMatching(/:1:1: url of Issuer .*\/ci cannot be changed/)]);
});

test('what the server stores in another form is as declared afterwards', async () => {
  const windows = [{ cron: '0 18 * * 5', timeZone: 'UTC', minutes: 60 }];
  await call('POST', 'update-rules', { kind: 'freeze', settings: { windows } });
  const [{ cron, minutes, timeZone }] = windows as [(typeof windows)[0]];
  const file = write(
    { kind: 'Organization', name: stack.organization, spec: { decryptByRole: false, defaultPermissions: null } },
    {
      ...{ kind: 'Issuer', name: 'ci' },
      spec: { url: 'https://ci.example', maxExpiration: 0, jwks: { issuer: 'https://ci.example', keys: [jwk] } },
    },
    {
      ...{ kind: 'UpdateRule', name: 'weekend' },
      spec: { rule: 'freeze', settings: { windows: [{ minutes, timeZone, cron }] } },
    },
  );
  expect((await plan(file)).counts).toMatchObject({ create: 1, change: 1, unchanged: 1 });
  await done(apply(file));
  expect(await run('plan', '-f', file, '--detailed-exitcode')).toMatchObject({ code: 0 });
});

test('an invalid command line of a plan has not the exit code of changes', async () => {
  const file = write({ kind: 'Team', name: 'blue' });
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  expect(await run('plan', '-f', file, '--detailed-exitcode', '--nonsense')).toMatchObject({ code: 1 });
  expect(await run('apply', '-f', file, '--nonsense')).toMatchObject({ code: 2 });
  jest.restoreAllMocks();
});

test('the last admin stays', async () => {
  const [{ login = '' } = {}] = await query<{ login: string }>(
    app,
    `select u.login from users u join memberships m on m.user_id = u.id join organizations o on o.id = m.organization_id
     where o.name = $1 and m.role = 'admin'`,
    [stack.organization],
  );
  const { code, stderr } = await apply(write({ kind: 'Member', name: login, spec: { role: 'member' } }));
  expect([code, stderr]).toEqual([1, expect.stringContaining('is the last admin of the organization')]);
});

test('a secret is set from a file, seen to change, and never shown', async () => {
  const file = write({
    kind: 'Webhook',
    name: 'ci',
    spec: { url: 'https://hooks.example', secret: { file: 'hook.txt' } },
  });
  const set = (secret: string) => writeFileSync(path.join(folder, 'hook.txt'), `${secret}\n`);
  const stored = async () =>
    (
      await query<{ secret: string }>(
        app,
        `select encode(secret, 'hex') as secret from webhooks w join organizations o on o.id = w.organization_id where o.name = $1`,
        [stack.organization],
      )
    )[0]?.secret;
  set('planted-secret-one');
  const shown = [(await run('plan', '-f', file)).stdout, (await done(apply(file))).stdout];
  expect((await plan(file)).changes).toEqual([]);
  const first = await stored();
  set('planted-secret-two');
  const changed = await run('plan', '-f', file);
  expect(changed.stdout).toContain('secret: (secret) → (secret) changed');
  shown.push(changed.stdout, JSON.stringify(parsed('apply', await done(apply(file, '--json')))));
  const second = await stored();
  expect(second).not.toBe(first);
  expect((await plan(file)).changes).toEqual([]);
  // The server takes no other address without the secret.
  const spec = { url: 'https://elsewhere.example', secret: { file: 'hook.txt' } };
  shown.push((await done(apply(write({ kind: 'Webhook', name: 'ci', spec })))).stdout);
  expect((await stored())?.length).toBe(second?.length);
  expect((await plan(file)).changes).toEqual([]);
  const { json } = await call('GET', 'managed-objects');
  shown.push(JSON.stringify(json), JSON.stringify(await listEvents(app, stack.organization)));
  expect(shown.join()).not.toContain('planted-secret');
});

test('after a refusal, what was done is noted, and the next run does the rest', async () => {
  const both = write({ kind: 'Team', name: 'blue' }, { kind: 'Webhook', name: 'ci', spec: { url: 'ftp://nowhere' } });
  const first = await apply(both, '--json');
  const refusal = expect.stringContaining(`Webhook ${stack.organization}/ci: `);
  expect([first.code, first.stderr]).toEqual([1, refusal]);
  expect(parsed('apply', first)).toMatchObject({ counts: { create: 2 }, applied: 1, refused: [refusal] });
  const rest = write(
    { kind: 'Team', name: 'blue' },
    { kind: 'Webhook', name: 'ci', spec: { url: 'https://hooks.example' } },
  );
  expect((await plan(rest)).counts).toEqual({ create: 1, change: 0, delete: 0, unchanged: 1 });
  await done(apply(rest));
  expect((await plan(rest)).changes).toEqual([]);
});

test('the schema that editors read names each kind', () => {
  const schema = documentSchema() as { oneOf: { properties: { kind: { const: string } } }[] };
  expect(schema.oneOf.map(({ properties }) => properties.kind.const)).toEqual([...kindNames]);
});

test('a token that administers nothing, and a server that is not there, are said in a sentence', async () => {
  const file = write({ kind: 'Team', name: 'blue' });
  const { auth } = await person(app, stack.organization, 'viewer');
  stack = { ...stack, auth };
  expect((await run('plan', '-f', file)).stderr).toMatch(/^holdfast: .*admin/);
  stack = { ...stack, auth: 'token none' };
  expect((await run('plan', '-f', file)).stderr).toBe(`holdfast: ${url} does not accept the token\n`);
});

describe('wait, approve and drain call the API for a stack', () => {
  const nameOf = (): string => stack.path.replace('/api/stacks/', '');

  test('drain stops the running update, and wait ends when it has ended', async () => {
    expect(await done(run('wait', nameOf()))).toMatchObject({ stdout: `No update of ${nameOf()} is running.\n` });
    expect(await run('drain', nameOf())).toMatchObject({
      ...{ code: 1, stderr: `holdfast: no update of ${nameOf()} is running\n` },
    });
    const update = await startUpdate(app, stack, { journal: true });
    const updateId = update.path.split('/').at(-1);
    const late = await run('wait', nameOf(), '--seconds', '1', '--every', '1');
    expect([late.code, late.stderr]).toEqual([1, `holdfast: the update ${updateId} still runs\n`]);
    const waiting = done(run('wait', nameOf(), '--every', '1'));
    const drained = await done(run('drain', nameOf(), '--reason', 'node pool is replaced'));
    expect(drained.stdout).toContain(`The update ${updateId} starts no new steps.\n`);
    const refused = await append(app, update, [creation(1, 'a', stack)[0]]);
    expect([refused.status, refused.json.message]).toEqual([403, expect.stringContaining('node pool is replaced')]);
    await ok(complete(app, update, 'failed'));
    await waiting;
  });

  test('approve gives an approval that somebody else has requested', async () => {
    const commit = 'b'.repeat(40);
    const approve = (...words: string[]) => run('approve', nameOf(), commit, '--reason', 'reviewed', ...words);
    const early = await approve();
    expect([early.code, early.stderr]).toEqual([
      1,
      expect.stringContaining(`nobody has requested an approval of ${commit}`),
    ]);
    const runner = await person(app, stack.organization, 'admin');
    await ok(app.call('POST', `${stack.path}/approvals`, { auth: runner.auth, body: { commit, reason: 'clean up' } }));
    const own = await approve('--token', runner.auth.slice(6));
    expect([own.code, own.stderr]).toEqual([1, expect.stringContaining('holdfast: ')]);
    const { stdout } = await done(approve('--minutes', '5'));
    expect(stdout).toBe(`Approved: runs of ${commit} (update) on ${nameOf()} pass for 5 minutes.\n`);
    const { json } = await ok(app.call('GET', `${stack.path}/approvals`, { auth: stack.auth }));
    expect(json.approvals).toMatchObject([{ commit, valid: true, reason: 'reviewed' }]);
  });

  test('approve finds a request behind many newer ones', async () => {
    const commit = 'a1'.repeat(20);
    await query(
      app,
      `insert into update_approvals (stack_id, kind, commit_id, asked_by, request, asked_at)
       select s.id, 'update', md5(n::text) || md5(n::text), 'ci', '', clock_timestamp() from stacks s
       join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id, generate_series(1, 120) n
       where o.name = $1`,
      [stack.organization],
    );
    const [one] = await query<{ id: string }>(
      app,
      `update update_approvals set commit_id = $1, asked_at = now() - interval '1 day' where id =
         (select a.id from update_approvals a join organizations o on o.id = a.organization_id where o.name = $2 limit 1) returning id`,
      [commit, stack.organization],
    );
    expect(one).toBeDefined();
    const { stdout } = await done(run('approve', nameOf(), commit, '--reason', 'reviewed'));
    expect(stdout).toContain(`Approved: runs of ${commit}`);
  });

  test.each([
    ['another stack', ['wait', 'acme/web'], 'argument'],
    ['a wrong time', ['wait', 'acme/web/prod', '--seconds', '0'], '--seconds'],
    ['a short hash', ['approve', 'acme/web/prod', 'abc1234', '--reason', 'x'], 'whole hash'],
    ['another kind', ['approve', 'acme/web/prod', 'a'.repeat(40), '--reason', 'x', '--kind', 'updates'], 'destroy'],
  ])('%s is refused', async (_, words, named) => {
    const { code, stderr } = await run(...words);
    expect([code, stderr]).toEqual([2, expect.stringContaining(named)]);
  });
});

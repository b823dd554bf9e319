import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { scimPath, stackPath } from '../../src/api/platform/http/paths.ts';
import { CommandFailedError, ToolUnavailableError } from '../../testkit/toolchain/command.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person, team } from '../support/grants.ts';
import { resolvedDocument } from '../support/openapi.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { command } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { Provider } from '../support/scim.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, createTestApp, type TestApp } from '../support/test-app.ts';
import { makeKey } from '../support/test-issuer.ts';
import { complete } from '../support/update-calls.ts';
import { settled, WireServer } from '../support/wire.ts';

// Three minutes on an idle machine, most of them in the fuzzer.
jest.setTimeout(1_800_000);

/** Cases per operation. HOLDFAST_TEST_FUZZ_EXAMPLES sets a higher number, and then different ones each time. */
const wanted = process.env['HOLDFAST_TEST_FUZZ_EXAMPLES'];
const examples = wanted ?? '4';
/** Most of these calls are refused for their targets alone. */
const arbitraryExamples = wanted ?? '2';
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
];

let app: TestApp;
let server: WireServer;
let directory: string;
let described: string;
let schemathesis: string | null = null;
const faults: string[] = [];

beforeAll(async () => {
  try {
    schemathesis = (await ensureToolchain({ only: ['schemathesis'] })).schemathesis;
  } catch (error) {
    if (!(error instanceof ToolUnavailableError || error instanceof CommandFailedError) || process.env['CI'])
      throw error;
    process.stderr.write(`The API is not fuzzed: ${error.message}\n`);
    return;
  }
  directory = mkdtempSync(path.join(tmpdir(), 'holdfast-fuzz-'));
  app = await createTestApp({
    // The leases of the updates last longer than the test, which waits for no events.
    settings: { HOLDFAST_DELETED_STACK_DAYS: '7', eventHoldMs: 0, leaseSeconds: 3_600 },
    log: {
      write: (line) => {
        if (line.includes('"level":"error"')) faults.push(line);
      },
    },
  });
  server = await WireServer.listen(app);
  // Python reads it at each start. By default, it looks for garbage so often that this is a fifth of the fuzzer's CPU time.
  writeFileSync(path.join(directory, 'sitecustomize.py'), 'import gc\ngc.set_threshold(50_000, 50, 100)\n');
  // Without examples, from which the fuzzer would make calls: they name servers of the internet.
  described = path.join(directory, 'openapi.json');
  writeFileSync(described, JSON.stringify(await resolvedDocument(app)));
});
afterAll(async () => {
  if (directory) rmSync(directory, { recursive: true, force: true });
  await app?.[Symbol.asyncDispose]();
});

/** What calls to some operations are made with. */
interface FuzzTarget {
  /** Pattern of `METHOD /path`; all operations without it. A path and a method apart would each do. */
  readonly operations?: string;
  readonly auth: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** For pages: the cookie of a person who is signed in. */
  readonly cookie?: string;
}

function toToml(targets: readonly FuzzTarget[]): string {
  const text = (value: string) => JSON.stringify(value);
  const table = (entries: Readonly<Record<string, string>>) =>
    `{ ${Object.entries(entries)
      .map(([key, value]) => `${text(key)} = ${text(value)}`)
      .join(', ')} }`;
  return targets
    .map(({ operations, auth, cookie, parameters }) =>
      [
        ...(operations === undefined ? [] : ['[[operations]]', `include-name-regex = ${text(operations)}`]),
        `headers = ${table({
          Accept: cliAccept,
          Authorization: auth,
          'Sec-Fetch-Site': 'same-origin',
          ...(cookie === undefined ? {} : { Cookie: cookie }),
        })}`,
        `parameters = ${table(parameters)}`,
      ].join('\n'),
    )
    .join('\n\n');
}

async function fuzz(
  targets: readonly FuzzTarget[],
  options: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const config = path.join(directory, `${Math.random().toString(36).slice(2)}.toml`);
  writeFileSync(config, toToml(targets));
  const seed = wanted === undefined ? ['--seed', '1'] : [];
  const pythonPath = [directory, process.env['PYTHONPATH'] ?? ''].filter((each) => each !== '').join(path.delimiter);
  const child = spawn(
    schemathesis as string,
    [
      ...['--no-color', '--config-file', config, 'run', described, '--url', server.url],
      ...['--phases', 'coverage,fuzzing', '--max-examples', examples, ...seed],
      ...['--checks', checks.join(','), '--suppress-health-check', 'all', '--continue-on-failure', '--warnings', 'off'],
      ...['--request-timeout', '30', ...options],
    ],
    { cwd: directory, env: { ...process.env, PYTHONPATH: pythonPath }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, output };
}

async function expectConforming(targets: readonly FuzzTarget[], options: readonly string[] = []): Promise<void> {
  if (schemathesis === null) return;
  faults.length = 0;
  const { code, output } = await fuzz(targets, options);
  if (code !== 0) throw new Error(`schemathesis ended with ${code}:\n${output}\n${faults.slice(0, 5).join('')}`);
  expect(faults).toEqual([]);
  if (wanted !== undefined) process.stderr.write(output);
  await settled(app);
  expect((await server.request('GET', '/healthz'))?.status).toBe(200);
}

/** Operations that were called and never succeeded. */
async function listUnserved(): Promise<string[]> {
  const { values } = await app.context.metrics.requestSeconds.get();
  const served = new Map<string, boolean>();
  for (const { labels } of values) {
    if (labels.route === undefined || labels.route === 'none') continue;
    const operation = `${labels.method} ${labels.route}`;
    // Forms of pages lead to another page.
    served.set(operation, served.get(operation) === true || /^(2|303)/.test(String(labels.status)));
  }
  return [...served].filter(([, isServed]) => !isServed).map(([operation]) => operation);
}

const at = (stack: TestStack, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  'path.organization': stack.organization,
  'path.project': stack.project,
  'path.stack': stack.stack,
  ...more,
});

/** Calls to policy packs and groups that exist, each of which is removed by one kind of call only. */
async function policyTargets(stack: TestStack): Promise<FuzzTarget[]> {
  const { auth, organization } = stack;
  const calls = new PolicyCalls(app, stack);
  for (const name of ['kept', 'gone', 'version-gone']) await calls.publish({ name });
  await ok(calls.upload(await ok(calls.begin({ name: 'pending' }))));
  for (const name of ['changing', 'leaving']) await ok(calls.call('POST', 'policygroups', { name }));
  await ok(calls.enable({ name: 'kept' }));
  const [required] = await calls.required();
  const { pathname, searchParams } = new URL(required.packLocation);
  const pack = (operations: string, name: string): FuzzTarget => ({
    operations,
    auth,
    parameters: { 'path.organization': organization, 'path.pack': name, 'path.versionTag': '1.0.0' },
  });
  const group = (method: string, name: string): FuzzTarget => ({
    operations: `^${method} .*/policygroups/`,
    auth,
    parameters: { 'path.organization': organization, 'path.group': name },
  });
  return [
    pack('^GET .*(/schema|/latest|\\{versionTag\\})$', 'kept'),
    pack('\\{versionTag\\}/complete$', 'pending'),
    pack('^DELETE .*/\\{pack\\}$', 'gone'),
    pack('^DELETE .*/\\{versionTag\\}$', 'version-gone'),
    group('GET', 'default-policy-group'),
    group('PATCH', 'changing'),
    group('DELETE', 'leaving'),
    {
      operations: '^GET /policy-packs/',
      auth,
      parameters: {
        'path.versionId': pathname.split('/').at(-1) as string,
        'query.expires': searchParams.get('expires') as string,
        'query.signature': searchParams.get('signature') as string,
      },
    },
  ];
}

/** Calls of an identity provider, to users and groups that exist. */
async function scimTargets({ organization }: TestStack): Promise<FuzzTarget[]> {
  const provider = await Provider.of(app, organization);
  const targetAt = (operations: string, id: string): FuzzTarget => ({
    operations,
    auth: provider.auth,
    parameters: { 'path.organization': organization, 'path.id': id },
  });
  const group = async (displayName: string): Promise<string> =>
    (await ok(provider.call('POST', 'Groups', { displayName }))).json.id;
  const [kept, gone] = [await provider.addUser('kept@example.test'), await provider.addUser('gone@example.test')];
  return [
    targetAt('/scim/v2/\\{organization\\}/\\w+$', kept),
    targetAt('^(GET|PUT|PATCH) .*/Users/\\{id\\}$', kept),
    targetAt('^DELETE .*/Users/\\{id\\}$', gone),
    targetAt('^(GET|PUT|PATCH) .*/Groups/\\{id\\}$', await group('kept')),
    targetAt('^DELETE .*/Groups/\\{id\\}$', await group('left')),
  ];
}

/** Calls to issuers that exist; one is deleted. */
async function issuerTargets({ auth, organization }: TestStack): Promise<FuzzTarget[]> {
  const jwks = { keys: [(await makeKey('ES256', 'one')).jwk] };
  const path = `/api/orgs/${organization}/oidc/issuers`;
  const made = async (name: string) =>
    (await ok(app.call('POST', path, { auth, body: { name, url: `https://${name}.example`, jwks } }))).json
      .id as string;
  const [kept, gone] = [await made('kept'), await made('gone')];
  const parameters = (id: string) => ({ 'path.organization': organization, 'path.issuerId': id, 'path.policyId': id });
  return [
    { operations: '^(GET|PATCH) .*/(oidc/issuers|oidcissuers|auth/policies)/', auth, parameters: parameters(kept) },
    { operations: '^DELETE .*/oidc/issuers/', auth, parameters: parameters(gone) },
  ];
}

/** Calls of a site admin to an organization and a user of their own; another organization is deleted. */
async function operatorTargets(): Promise<FuzzTarget[]> {
  const { auth, userId } = await person(app, 'limited', 'admin');
  const { login } = await person(app, 'limited', 'viewer');
  await query(app, 'update users set site_admin = true where id = $1', [userId]);
  await ok(app.call('POST', '/api/operator/organizations', { auth, body: { name: 'gone' } }));
  const base = '/api/operator/';
  return [
    { operations: base, auth, parameters: { 'path.login': login, 'path.name': 'limited' } },
    { operations: `^DELETE ${base}organizations/`, auth, parameters: { 'path.name': 'gone' } },
  ];
}

/** Calls to roles and grants that exist; one of each is removed. */
async function roleTargets({ auth, organization }: TestStack): Promise<FuzzTarget[]> {
  const base = `/api/orgs/${organization}`;
  const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
  const role = async (name: string) =>
    (await ok(app.call('POST', `${base}/roles`, { auth, body: { name, details } }))).json.id as string;
  const body = { effect: 'allow', permissions: ['read'], team: 'blue' };
  const grant = (await ok(app.call('POST', `${base}/grants`, { auth, body }))).json.id as string;
  await ok(app.call('POST', `${base}/teams/red/roles/member`, { auth }));
  const [kept, gone] = [await role('kept'), await role('gone')];
  const targetAt = (operations: string, parameters: FuzzTarget['parameters']): FuzzTarget => ({
    operations,
    auth,
    parameters: { 'path.organization': organization, ...parameters },
  });
  return [
    targetAt('^(GET|PATCH) .*/orgs/\\{organization\\}/roles/', { 'path.role': kept }),
    targetAt('^DELETE .*/orgs/\\{organization\\}/roles/', { 'path.role': gone }),
    targetAt('^DELETE .*/grants/', { 'path.grant': grant }),
    targetAt('^(GET|POST) .*/teams/\\{team\\}/roles', { 'path.team': 'blue', 'path.role': 'viewer' }),
    targetAt('^DELETE .*/teams/\\{team\\}/roles/', { 'path.team': 'red', 'path.role': 'member' }),
  ];
}

/** Calls to rules that exist; one is deleted. */
async function ruleAims({ auth, organization }: TestStack): Promise<FuzzTarget[]> {
  const path = `/api/orgs/${organization}/update-rules`;
  const made = async (kind: string, settings: object) =>
    (await ok(app.call('POST', path, { auth, body: { kind, settings } }))).json.id as string;
  const parameters = (id: string) => ({ 'path.organization': organization, 'path.ruleId': id });
  return [
    {
      operations: '^(GET|PUT) .*/update-rules/',
      auth,
      parameters: parameters(await made('lock-wait', { seconds: 0 })),
    },
    {
      operations: '^DELETE .*/update-rules/',
      auth,
      parameters: parameters(await made('supersede', { by: 'nothing' })),
    },
  ];
}

/** Calls to deleted stacks: one is restored, one deleted for good. */
async function deletedAims({ auth, organization, project }: TestStack): Promise<FuzzTarget[]> {
  const deleted = async (stackName: string) => {
    await ok(app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName } }));
    const path = `/api/stacks/${organization}/${project}/${stackName}`;
    const { id } = (await ok(app.call('GET', path, { auth }))).json;
    await ok(app.call('DELETE', path, { auth }));
    return id as string;
  };
  const parameters = (id: string) => ({ 'path.organization': organization, 'path.deletedStackId': id });
  return [
    { operations: '^POST .*/deleted-stacks/', auth, parameters: parameters(await deleted('restored')) },
    { operations: '^DELETE .*/deleted-stacks/', auth, parameters: parameters(await deleted('purged')) },
  ];
}

/** Calls to an approval that a colleague has asked for. */
async function approvalAims({ auth, organization, path, project, stack }: TestStack): Promise<FuzzTarget[]> {
  const colleague = await person(app, organization, 'member');
  const body = { commit: 'a'.repeat(40) };
  const { json } = await ok(app.call('POST', `${path}/approvals`, { auth: colleague.auth, body }));
  const target = { 'path.organization': organization, 'path.project': project, 'path.stack': stack };
  const other = (
    await ok(app.call('POST', `${path}/approvals`, { auth: colleague.auth, body: { commit: 'b'.repeat(40) } }))
  ).json;
  return [
    { operations: '^POST .*/approvals/', auth, parameters: { ...target, 'path.approvalId': json.id as string } },
    { operations: '^DELETE .*/approvals/', auth, parameters: { ...target, 'path.approvalId': other.id as string } },
  ];
}

/** Calls to invitations, each of which ends by one kind of call; and of a person who leaves. */
async function invitationAims({ auth, organization }: TestStack): Promise<FuzzTarget[]> {
  const invited = async () => {
    const one = await person(app, `${organization}-guests`, 'viewer');
    const body = { login: one.login, role: 'viewer' };
    await ok(app.call('POST', `/api/orgs/${organization}/invitations`, { auth, body }));
    return one;
  };
  const [accepting, declining, withdrawn] = [await invited(), await invited(), await invited()];
  const leaver = await person(app, organization, 'viewer');
  const own = (operations: string, by: { readonly auth: string }): FuzzTarget => ({
    operations,
    auth: by.auth,
    parameters: { 'path.organization': organization },
  });
  return [
    own('^POST /api/user/invitations/', accepting),
    own('^DELETE /api/user/invitations/', declining),
    own('^DELETE /api/user/organizations/', leaver),
    {
      operations: '^DELETE .*/orgs/\\{organization\\}/invitations/',
      auth,
      parameters: { 'path.organization': organization, 'path.login': withdrawn.login },
    },
  ];
}

/** Somebody who is no member, and a site admin who adds them. */
async function joiner(organization: string): Promise<{ readonly auth: string; readonly login: string }> {
  const { auth, userId } = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [userId]);
  return { auth, login: (await person(app, `${organization}-guests`, 'viewer')).login };
}

/** Calls to webhooks that exist and whose server refuses connections; one of each scope is deleted. */
async function hookAims(stack: TestStack): Promise<FuzzTarget[]> {
  const { auth, organization } = stack;
  const hookPaths = [
    [`/api/orgs/${organization}`, '/orgs/\\{organization\\}/hooks'],
    [stack.path, '\\{stack\\}/hooks'],
  ] as const;
  const targets = hookPaths.map(async ([base, pattern]): Promise<FuzzTarget[]> => {
    const made = async (name: string) => {
      const body = { displayName: name, payloadUrl: 'https://127.0.0.1/' };
      return (await ok(app.call('POST', `${base}/hooks`, { auth, body }))).json.name as string;
    };
    const [kept, gone] = [await made('kept'), await made('gone')];
    const { json } = await ok(app.call('POST', `${base}/hooks/${kept}/ping`, { auth }));
    const parameters = (hook: string) => at(stack, { 'path.hook': hook, 'path.deliveryId': json.id });
    return [
      { operations: `^(GET|PATCH|POST) .*${pattern}/`, auth, parameters: parameters(kept) },
      { operations: `^DELETE .*${pattern}/`, auth, parameters: parameters(gone) },
    ];
  });
  return (await Promise.all(targets)).flat();
}

/** Readers of a badge and of a feed. */
async function embedAims({ auth, organization, project, stack }: TestStack): Promise<FuzzTarget[]> {
  const made = async (kind: 'badge' | 'feed') => {
    const target = { organization, project, stack };
    const { data } = await command(app, auth.replace('token ', ''), 'embeds.createOfStack', { ...target, kind });
    return { 'query.token': data.token as string };
  };
  return [
    { operations: '^GET /api/embeds/badge', auth, parameters: await made('badge') },
    { operations: '^GET /api/embeds/updates', auth, parameters: await made('feed') },
  ];
}

/** Calls to pages by people who are signed in. */
async function pageAims(organization: string, auth: string): Promise<FuzzTarget[]> {
  const targetAt = async (operations: string, parameters: FuzzTarget['parameters'] = {}): Promise<FuzzTarget> => {
    const { login } = await person(app, organization, 'viewer');
    await setPassword(app, login);
    const browser = new PageBrowser(app);
    await browser.signIn(login);
    return { operations, auth, parameters, cookie: `holdfast=${browser.cookies.get('holdfast')}` };
  };
  return [
    await targetAt('^GET /account$'),
    await targetAt('^GET /cli-login$', { 'query.cliSessionPort': '4321', 'query.cliSessionNonce': 'ab'.repeat(32) }),
    await targetAt('^POST /(account/(password|end-session|passkeys.*|invitations/.*|leave)|cli-login)$'),
    await targetAt('^POST /account/sign-out-everywhere$'),
    await targetAt('^POST /sign-out$'),
  ];
}

/** Calls with a form, whose valid fields are not generated by chance. */
const forms = [
  'POST /sign-in',
  'POST /sign-in/link',
  'POST /sign-in/passkey',
  'POST /account/password',
  'POST /account/passkeys',
  'POST /account/passkeys/remove',
  'POST /account/end-session',
  'POST /account/invitations/accept',
  'POST /account/invitations/decline',
  'POST /account/leave',
  'POST /cli-login',
  // Without a provider.
  'GET /sign-in/provider',
  'GET /sign-in/provider/callback',
];

describe('generated calls are answered as the API description says', () => {
  test('most calls to existing stacks and updates succeed', async () => {
    if (schemathesis === null) return;
    const idle = await createStack(app);
    const { auth } = idle;
    const named = async (stack: string): Promise<TestStack> => {
      const created = { ...idle, stack, path: idle.path.replace(/dev$/, stack) };
      await ok(app.call('POST', `/api/stacks/${idle.organization}/proj`, { auth, body: { stackName: stack } }));
      return created;
    };
    const plain = await named('plain');
    const plainUpdate = await startUpdate(app, plain);
    const journal = await named('journal');
    const journalUpdate = await startUpdate(app, journal, { journal: true });
    const waiting = await named('waiting');
    const created = await ok(app.call('POST', `${waiting.path}/update`, { auth, body: {} }));
    const ending = await named('ending');
    const endingUpdate = await startUpdate(app, ending);
    const cancelled = await named('cancelled');
    const cancelledUpdate = await startUpdate(app, cancelled);
    const ended = await named('ended');
    const endedUpdate = await startUpdate(app, ended);
    await ok(complete(app, endedUpdate));
    const draining = await named('draining');
    const drainingUpdate = await startUpdate(app, draining, { journal: true });
    const { organization } = idle;
    const leaving = await person(app, organization, 'viewer');
    const staying = await person(app, organization, 'viewer');
    const joined = await joiner(organization);
    for (const name of ['blue', 'gone', 'red']) await team(app, staying.organizationId, name, []);
    const ofTokens = [
      ['/api/user/tokens', '/user/tokens'],
      [`/api/orgs/${organization}/tokens`, '/orgs/\\{organization\\}/tokens'],
      [`/api/orgs/${organization}/teams/blue/tokens`, '/teams/\\{team\\}/tokens'],
    ] as const;
    const tokenAims = await Promise.all(
      ofTokens.map(async ([base, pattern]): Promise<FuzzTarget[]> => {
        const made = async (name: string) =>
          (await ok(app.call('POST', base, { auth, body: { name } }))).json.id as string;
        const parameters = { 'path.organization': organization, 'path.team': 'blue' };
        return [
          { operations: `${pattern}$`, auth, parameters },
          {
            operations: `^DELETE .*${pattern}/`,
            auth,
            parameters: { ...parameters, 'path.tokenId': await made('gone') },
          },
          {
            operations: `${pattern}/.*/rotate$`,
            auth,
            parameters: { ...parameters, 'path.tokenId': await made('kept') },
          },
        ];
      }),
    );
    const member = (login: string) => ({ 'path.organization': organization, 'path.login': login });
    const update = (stack: TestStack, id: string) => at(stack, { 'path.updateId': id, 'path.kind': 'update' });
    await expectConforming([
      { auth, parameters: at(idle, { 'path.updateId': plainUpdate.id, 'path.kind': 'update' }) },
      {
        operations: '/(checkpoint\\w*|renew_lease|events/batch)$',
        auth: plainUpdate.lease,
        parameters: update(plain, plainUpdate.id),
      },
      { operations: '/events$', auth, parameters: update(plain, plainUpdate.id) },
      { operations: '^GET .*/\\{updateId\\}$', auth, parameters: update(plain, plainUpdate.id) },
      { operations: '^POST .*/\\{updateId\\}$', auth, parameters: update(waiting, created.json.updateID) },
      { operations: '/journalentries$', auth: journalUpdate.lease, parameters: update(journal, journalUpdate.id) },
      ...(await policyTargets(idle)),
      ...(await scimTargets(idle)),
      ...(await pageAims(organization, auth)),
      { operations: '\\{updateId\\}/complete$', auth: endingUpdate.lease, parameters: update(ending, endingUpdate.id) },
      { operations: '/cancel$', auth, parameters: update(cancelled, cancelledUpdate.id) },
      { operations: '/statistics$', auth, parameters: update(ended, endedUpdate.id) },
      { operations: '/drain$', auth, parameters: update(draining, drainingUpdate.id) },
      ...tokenAims.flat(),
      ...(await issuerTargets(idle)),
      ...(await operatorTargets()),
      ...(await roleTargets(idle)),
      ...(await ruleAims(idle)),
      ...(await deletedAims(idle)),
      ...(await approvalAims(idle)),
      ...(await invitationAims(idle)),
      ...(await hookAims(idle)),
      ...(await embedAims(idle)),
      {
        operations: '^(GET|PATCH) .*/teams/\\{team\\}$',
        auth,
        parameters: { 'path.organization': organization, 'path.team': 'blue' },
      },
      {
        operations: '^DELETE .*/teams/\\{team\\}$',
        auth,
        parameters: { 'path.organization': organization, 'path.team': 'gone' },
      },
      { operations: '^POST .*/members/', auth: joined.auth, parameters: member(joined.login) },
      { operations: '^PATCH .*/members/', auth, parameters: member(staying.login) },
      { operations: '^DELETE .*/members/', auth, parameters: member(leaving.login) },
      { operations: '/rename$', auth, parameters: at(await named('renamed')) },
      { operations: '^DELETE .*/\\{stack\\}$', auth, parameters: at(await named('deleted')) },
      { operations: '/(update|refresh|destroy|begin-update)$', auth, parameters: at(await named('busy')) },
    ]);
    // Their valid arguments are too rare to be generated by chance.
    const rare = [
      ...forms,
      `POST ${stackPath}/rename`,
      `GET ${stackPath}/export/:stackVersion`,
      'PUT /policy-packs/:versionId',
      'POST /api/oauth/token',
      'POST /api/orgs/:organization/oidc/issuers',
      'POST /api/orgs/:organization/grants',
      'POST /api/orgs/:organization/update-rules',
      'POST /api/orgs/:organization/deleted-stacks/:deletedStackId/restore',
      'PUT /api/orgs/:organization/update-rules/:ruleId',
      'GET /api/orgs/:organization/update-rules/estimate',
      `PUT ${stackPath}/versions/:stackVersion/pin`,
      `DELETE ${stackPath}/versions/:stackVersion/pin`,
      `PATCH ${stackPath}/tags/:tag`,
      `POST ${stackPath}/approvals`,
      'POST /api/orgs/:organization/hooks',
      `POST ${stackPath}/hooks`,
      `POST ${stackPath}/approvals/:approvalId`,
      ...['POST', 'PUT', 'PATCH'].flatMap((method) =>
        ['Users', 'Groups'].map((name) => `${method} ${scimPath}/${name}${method === 'POST' ? '' : '/:id'}`),
      ),
    ];
    expect(rare.filter((operation) => !listRoutes(app.app).includes(operation))).toEqual([]);
    expect((await listUnserved()).filter((operation) => !rare.includes(operation))).toEqual([]);
  });

  test('calls to arbitrary targets match the description', async () => {
    if (schemathesis === null) return;
    const { auth } = await createStack(app);
    const options = ['--phases', 'fuzzing', '--max-examples', arbitraryExamples];
    await expectConforming([{ auth, parameters: {} }], options);
  });
});

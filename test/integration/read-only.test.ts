import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { checkForRollback } from '../../src/shared/updates/rollback-detection/rollback-monitor.ts';
import { runAdminCommand } from '../support/admin.ts';
import { browserOf, PageBrowser, setPassword } from '../support/browser.ts';
import { changedTables, readTables } from '../support/changed-tables.ts';
import { holdInserts, query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { pages } from '../support/page-routes.ts';
import { PolicyCalls, pathOf } from '../support/policy-packs.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { ask, command, type ProcedureResult } from '../support/procedures.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;
const reason = 'the database moves to another machine';

/** What goes on while the installation is read-only. Everything else that may change something must be refused. */
const goingOn = [
  `POST ${U}`,
  `POST ${U}/cancel`,
  `POST ${U}/drain`,
  `POST ${U}/renew_lease`,
  `POST ${U}/complete`,
  `POST ${U}/events/batch`,
  `PATCH ${U}/checkpoint`,
  `PATCH ${U}/checkpointverbatim`,
  `PATCH ${U}/checkpointdelta`,
  `PATCH ${U}/journalentries`,
  `POST ${S}/encrypt`,
  `POST ${S}/batch-encrypt`,
  `POST ${S}/decrypt`,
  `POST ${S}/batch-decrypt`,
  `POST ${S}/decrypt/log-decryption`,
  `POST ${S}/decrypt/log-batch-decryption`,
  'POST /sign-in',
  'POST /sign-in/link',
  'POST /sign-in/passkey/options',
  'POST /sign-in/passkey',
  'POST /sign-out',
  'POST /account/end-session',
  'POST /account/sign-out-everywhere',
  // Each procedure decides.
  'POST /trpc/:procedures',
];
const mutationsGoingOn = ['updates.cancel', 'updates.drain', 'secrets.reveal', 'audit.export'];

/** What goes on at a site that another one has replaced. */
const goingOnFenced = goingOn.filter((route) => !/^\w+ \/(api|scim)\//.test(route));
/** Queries that are recorded. */
const queriesRefused = ['versions.text'];
/** What changes while people sign in and out. */
const signInTables = ['audit_events', 'sessions', 'sign_in_attempts', 'sign_in_flows', 'sign_in_paces'];

const app = testApp();
let owner: Person;
let stack: TestStack;
let update: RunningUpdate;
let provisioning: string;
/** Signed, to upload an archive of a policy pack. */
let archivePath: string;

beforeAll(async () => {
  owner = await person(app, 'acme', 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [owner.userId]);
  await setPassword(app, owner.login);
  const { auth } = owner;
  provisioning = await provisioningToken(app, 'acme');
  await ok(app.call('POST', '/api/stacks/acme/proj', { auth, body: { stackName: 'dev' } }));
  const place = { organization: 'acme', project: 'proj', stack: 'dev' };
  stack = { ...place, auth, path: '/api/stacks/acme/proj/dev' };
  update = await startUpdate(app, stack);
  archivePath = pathOf((await ok(new PolicyCalls(app, stack).begin())).json.uploadURI);
  await turn('on', '--reason', reason);
});

beforeEach(() => checkForRollback(app.context));

/** Runs the command, and lets the app follow. */
async function turn(...words: string[]): Promise<string> {
  const { code, stderr, stdout } = await runAdminCommand(app, 'read-only', ...words);
  if (code !== 0) throw new Error(stderr);
  await checkForRollback(app.context);
  return stdout;
}

async function callRoute(route: string, lease = 'update-token none') {
  const [method, pattern] = route.split(' ') as [string, string];
  if (route === 'PUT /policy-packs/:versionId') return app.call(method, archivePath, { body: 'x', accept: null });
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    .replace(':organization', 'acme')
    .replace(':project', 'proj')
    .replace(':stack', 'dev')
    // Another one for calls that would end it.
    .replace(':updateId', /\/(cancel|drain)$/.test(pattern) ? randomUUID() : update.id)
    .replaceAll(/:\w+/g, () => randomUUID());
  if (pages[route] !== undefined) {
    const browser = pages[route] === 'session' ? await browserOf(app, owner.login) : new PageBrowser(app);
    return browser.post(url, { login: 'nobody', password: 'none', next: '' });
  }
  const isOfLease =
    pattern.startsWith('/api/stacks/') &&
    /\/(complete|renew_lease|checkpoint\w*|journalentries|events\/batch)$/.test(pattern);
  const auth = url.startsWith('/scim/') ? provisioning : isOfLease ? lease : owner.auth;
  // A body that the call refuses later: what goes on must change nothing here.
  const body = method === 'DELETE' ? {} : { body: goingOn.includes(route) ? 'x' : bodySampleOf(pattern) };
  return app.call(method, url, { auth, ...body });
}

const { procedures } = appRouter._def as unknown as {
  procedures: Record<string, { _def: { meta?: ProcedureMeta; type: string } }>;
};

/** What a call of each procedure has led to. */
async function callProcedures(): Promise<[string, ProcedureResult][]> {
  const place = { organization: 'acme', project: 'proj', stack: 'dev' };
  const results: [string, ProcedureResult][] = [];
  for (const [name, { _def }] of Object.entries(procedures)) {
    if (!procedureTable[name]) continue;
    const { input: given = {} } = procedureTable[name] ?? {};
    const input = { ...place, ...(typeof given === 'function' ? given(place) : given) };
    results.push([name, await (_def.type === 'query' ? ask : command)(app, owner.token, name, input)]);
  }
  return results;
}

const fenced = 'another site has taken over';

/** Lets the app know, while `run` runs, that another site has taken over. */
async function whileFenced(run: () => Promise<void>): Promise<void> {
  await query(app, 'update installation set fenced_since = now()');
  await checkForRollback(app.context);
  try {
    await run();
  } finally {
    await query(app, 'update installation set fenced_since = null');
    await checkForRollback(app.context);
  }
}

test('a walk over all routes of a site that was replaced: all writes are refused, but people sign in and out', async () => {
  const routes = listRoutes(app.app).filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route));
  expect(goingOnFenced).not.toEqual(goingOn);
  await whileFenced(async () => {
    const before = await readTables(app);
    const wrong: object[] = [];
    for (const route of routes) {
      const { status, text } = await callRoute(route, update.lease);
      if ((status === 503 && text.includes(fenced)) === goingOnFenced.includes(route))
        wrong.push({ route, status, text });
    }
    expect(wrong).toEqual([]);
    expect(await changedTables(app, before)).toEqual(signInTables);
  });
});

test('a walk over all procedures of such a site: all mutations are refused, and only queries that are recorded', async () => {
  await whileFenced(async () => {
    const before = await readTables(app);
    const refused: string[] = [];
    for (const [name, { error, status }] of await callProcedures())
      if (status === 503 && error?.kind === 'read-only' && error.message.includes(fenced)) refused.push(name);
    const mutations = Object.entries(procedures).filter(([, { _def }]) => _def.type === 'mutation');
    expect(refused.sort()).toEqual([...mutations.map(([name]) => name), ...queriesRefused].sort());
    expect(await changedTables(app, before)).toEqual([]);
  });
});

test('a walk over all routes: everything that may change something is refused with the reason, but for a short list', async () => {
  const routes = listRoutes(app.app).filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route));
  expect(goingOn.filter((route) => !routes.includes(route))).toEqual([]);
  const wrong: object[] = [];
  for (const route of routes) {
    const { headers, status, text } = await callRoute(route);
    const isRefused = status === 503 && text.includes(reason) && headers['retry-after'] === '60';
    if (isRefused === goingOn.includes(route)) wrong.push({ route, status, text });
  }
  expect(wrong).toEqual([]);
  expect(routes.length).toBeGreaterThan(80);
});

test('a walk over all procedures: mutations are refused with the reason, but for a short list, and queries go on', async () => {
  const wrong: object[] = [];
  for (const [name, { error, status }] of await callProcedures()) {
    const isQuery = procedures[name]?._def.type === 'query';
    const isRefused = status === 503 && error?.kind === 'read-only' && error.message.includes(reason);
    if (isRefused === (isQuery || mutationsGoingOn.includes(name))) wrong.push({ name, status, error });
  }
  expect(wrong).toEqual([]);
  expect(Object.values(procedures).filter(({ _def }) => _def.type === 'mutation').length).toBeGreaterThan(40);
  expect(
    Object.entries(procedures).filter(([name, { _def }]) => _def.type === 'mutation' && !procedureTable[name]),
  ).toEqual([]);
});

test('a running update saves its state and ends, its state can be read, and status counts it until then', async () => {
  expect(await turn('status')).toBe(`Read-only since ${await sinceText()}: ${reason}\n1 update is running.\n`);
  const { lease: auth, path } = update;
  await ok(app.call('POST', `${path}/renew_lease`, { auth, body: { duration: 300 } }));
  await ok(app.call('PATCH', `${path}/checkpoint`, { auth, body: { isInvalid: false, ...deployment(3) } }));
  await ok(app.call('POST', `${path}/complete`, { auth, body: { status: 'succeeded' } }));
  const { json } = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  expect(json.deployment.resources).toHaveLength(3);
  expect(await turn('status')).toContain('0 updates are running.');
});

test('people sign in and see the reason on each page; readiness and the gauge tell operators', async () => {
  const browser = new PageBrowser(app);
  expect((await browser.signIn(owner.login)).status).toBe(303);
  expect(await browser.isSignedIn()).toBe(true);
  expect((await ask(app, owner.token, 'me.get')).data.readOnly).toBe(reason);
  expect((await app.call('GET', '/readyz')).status).toBe(200);
  expect((await app.call('GET', '/metrics')).text).toMatch(/^holdfast_read_only 1$/m);
  // A stranger does not learn the reason.
  const { status, text } = await app.call('POST', `${stack.path}/update`, { body: {}, auth: 'token nobody' });
  expect({ status, tells: text.includes(reason) }).toEqual({ status: 401, tells: false });
});

test('a call that waits for its stack is refused when its turn comes, and switching off is recorded', async () => {
  await turn('off');
  const held = await startUpdate(app, stack);
  const rule = { kind: 'lock-wait', settings: { seconds: 60 } };
  await ok(app.call('POST', '/api/orgs/acme/update-rules', { auth: stack.auth, body: rule }));
  const waiting = app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
  await until(async () => (await query(app, 'select 1 from update_queue_waiters')).length > 0, 'the call waits');
  await turn('on', '--reason', 'second');
  await ok(app.call('POST', `${held.path}/complete`, { auth: held.lease, body: { status: 'succeeded' } }));
  const { status, text } = await waiting;
  expect({ status, text }).toEqual({ status: 503, text: expect.stringContaining('second') });
  expect(await turn('off')).toBe('The installation accepts all writes. 0 updates are running.\n');
  expect((await app.call('GET', '/metrics')).text).toMatch(/^holdfast_read_only 0$/m);
  await startUpdate(app, stack);
  const events = await query(
    app,
    `select details from audit_events where action = 'installation.read-only' order by number`,
  );
  expect(events.map(({ details }) => JSON.parse(String(details)))).toEqual([
    { isReadOnly: true, reason },
    { isReadOnly: false },
    { isReadOnly: true, reason: 'second' },
    { isReadOnly: false },
  ]);
});

/** Calls over the network, where a connection can end without a response. Returns the status of the response; null: there was none. */
function send(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<number | null> {
  return new Promise((resolve) => {
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? null);
    });
    sent.on('error', () => resolve(null));
    sent.end(body);
  });
}

test('what was on its way when a site learns that it was replaced is not acknowledged, in no part of the API', async () => {
  const url = await app.app.listen({ host: '127.0.0.1', port: 0 });
  const browser = await browserOf(app, (await person(app, 'acme', 'viewer')).login);
  const json = { 'content-type': 'application/json', authorization: stack.auth };
  const form = {
    ...{ host: 'localhost:9090', origin: 'http://localhost:9090', 'sec-fetch-site': 'same-origin' },
    ...{ 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
    cookie: [...browser.cookies].map((each) => each.join('=')).join('; '),
  };
  const hook = {
    displayName: 'late',
    url: 'https://hooks.example.com/y',
    format: 'raw',
    isActive: true,
    events: [],
    groups: [],
  };
  await using gate = await holdInserts(app, 'audit_events');
  // Only one of them changes people: another such call would wait for it, and be refused.
  const calls = [
    send(`${url}${stack.path}/tags`, { ...json, accept: cliAccept }, '{"name":"zone","value":"eu"}'),
    send(`${url}/trpc/webhooks.create`, json, JSON.stringify({ organization: 'acme', ...hook })),
    send(`${url}/account/leave`, form, 'organization=acme'),
  ];
  await gate.reached(calls.length);
  await whileFenced(async () => {
    await gate.release();
    expect(await Promise.all(calls)).toEqual([null, 503, null]);
  });
  // They are the ones that have changed something.
  const members = `select 1 from memberships m join users u on u.id = m.user_id where u.login like 'viewer-%'`;
  const hooks = `select display_name as name from webhooks where display_name = 'late'`;
  expect([await query(app, members), await query(app, hooks)]).toEqual([[], [{ name: 'late' }]]);
});

async function sinceText(): Promise<string> {
  const [row] = await query<{ since: Date }>(app, 'select read_only_since as since from installation');
  return (row as { since: Date }).since.toISOString();
}

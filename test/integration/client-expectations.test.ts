import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { pulumiVersions } from '../../testkit/toolchain/recipes.ts';
import { query } from '../support/database.ts';
import { beginning } from '../support/journal-entries.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, type TestResponse, testApp } from '../support/test-app.ts';
import { append, cancel, complete, saveState } from '../support/update-calls.ts';
import { head, WireServer } from '../support/wire.ts';

/** What the CLI and its SDKs expect of a service beyond the shapes of its responses. */

const app = testApp({ settings: { invalidTokensPerMinute: 100_000 } });
let server: WireServer;
beforeAll(async () => {
  server = await WireServer.listen(app);
});

const root = { urn: 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev', custom: false, type: 'pulumi:pulumi:Stack' };

async function saveResources(stack: TestStack, resources: readonly object[], operations: readonly object[] = []) {
  const update = await startUpdate(app, stack);
  const { version, deployment: state } = deployment(0);
  const body = { version, deployment: { ...state, resources, pending_operations: operations } };
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
  await ok(complete(app, update));
}

const remove = (stack: TestStack, force = false): Promise<TestResponse> =>
  app.call('DELETE', `${stack.path}?force=${force}`, { auth: stack.auth });

describe('a locked stack', () => {
  // The SDKs for Go, Node and Python search the CLI's output for `[409] ` and this sentence.
  const sentence = 'Conflict: Another update is currently in progress.';

  test.each<[string, (stack: TestStack) => Promise<TestResponse>]>([
    ['create', ({ path, auth }) => app.call('POST', `${path}/update`, { auth, body: {} })],
    ['import', ({ path, auth }) => app.call('POST', `${path}/import`, { auth, body: deployment(1) })],
    ['rename', ({ path, auth }) => app.call('POST', `${path}/rename`, { auth, body: { newName: 'other' } })],
    ['delete', (stack) => remove(stack, true)],
  ])('returns 409 with the text that SDKs search for: %s', async (_name, call) => {
    const stack = await createStack(app);
    await startUpdate(app, stack);
    const { status, json } = await call(stack);
    expect(status).toBe(409);
    expect(json.code).toBe(409);
    expect(json.message.startsWith(sentence)).toBe(true);
    expect(json.message).toContain('pulumi cancel');
  });
});

describe('removal without force', () => {
  const other = { urn: 'urn:pulumi:dev::proj::a:b:C::c', custom: true, id: 'c', type: 'a:b:C' };

  test('of a stack that holds only its root succeeds', async () => {
    const stack = await createStack(app);
    await saveResources(stack, [root]);
    expect((await remove(stack)).status).toBe(204);
    expect((await app.call('GET', stack.path, { auth: stack.auth })).status).toBe(404);
  });

  test('of a stack whose root is in the journal of a cancelled update succeeds', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(
      append(app, update, [
        beginning(1, 1),
        { version: 1, kind: 1, sequenceID: 2, operationID: 1, removeOld: null, removeNew: null, state: root },
      ]),
    );
    await ok(cancel(app, stack, update));
    expect((await remove(stack)).status).toBe(204);
  });

  test('of a stack whose root is large enough for the blob store succeeds', async () => {
    const stack = await createStack(app);
    const outputs = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`o${index}`, randomUUID()]));
    await saveResources(stack, [{ ...root, outputs }]);
    expect((await remove(stack)).status).toBe(204);
  });

  test.each<[string, readonly object[], readonly object[]]>([
    ['another resource beside the root', [root, other], []],
    ['one resource that is not the root', [other], []],
    ['the root and an operation that was cut off', [root], [{ resource: other, type: 'creating' }]],
  ])('is rejected for %s', async (_name, resources, operations) => {
    const stack = await createStack(app);
    await saveResources(stack, resources, operations);
    const { status, json } = await remove(stack);
    // The CLI compares the whole text.
    expect({ status, ...json }).toEqual({
      status: 400,
      code: 400,
      message: 'Bad Request: Stack still contains resources.',
    });
    expect((await remove(stack, true)).status).toBe(204);
  });
});

describe('a lease used for another update', () => {
  const sentence = 'This lease is for another update or stack than the one at this URL';

  async function refusals(lease: string, paths: readonly string[]): Promise<TestResponse[]> {
    const answers: TestResponse[] = [];
    for (const path of paths) {
      answers.push(await app.call('POST', `${path}/renew_lease`, { auth: lease, body: { duration: 300 } }));
      answers.push(await app.call('POST', `${path}/complete`, { auth: lease, body: { status: 'succeeded' } }));
      answers.push(await app.call('PATCH', `${path}/checkpoint`, { auth: lease, body: deployment(1) }));
    }
    return answers;
  }
  const at = (stack: TestStack, id: string) => `${stack.path}/update/${id}`;

  test('is rejected with its own message, the same whether the stack exists or not', async () => {
    const [own, foreign] = [await createStack(app), await createStack(app)];
    const [update, theirs] = [await startUpdate(app, own), await startUpdate(app, foreign)];
    const answers = await refusals(update.lease, [
      at(foreign, update.id),
      at(foreign, theirs.id),
      at(foreign, randomUUID()),
      at(own, theirs.id),
      at({ ...own, path: `${own.path}-absent` }, update.id),
      at({ ...own, path: '/api/stacks/nobody/nothing/nowhere' }, update.id),
      at({ ...own, path: '/api/stacks/nobody/nothing/nowhere' }, randomUUID()),
    ]);
    expect(new Set(answers.map(({ status, json }) => `${status} ${json.code} ${json.message}`))).toEqual(
      new Set([`403 403 ${sentence}`]),
    );
    // It still works for its own update and had no effect elsewhere.
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    expect((await getStack(app, foreign)).activeUpdate).toBe(theirs.id);
  });

  test('is called dead everywhere if it has ended or never existed', async () => {
    const [own, foreign] = [await createStack(app), await createStack(app)];
    const update = await startUpdate(app, own);
    await ok(cancel(app, own, update));
    const unknown = `update-token ${mintToken('lease-').token}`;
    for (const lease of [update.lease, unknown])
      for (const { status, json } of await refusals(lease, [at(foreign, update.id), at(own, update.id)])) {
        expect(status).toBe(403);
        expect(json.message).toContain('no longer valid');
      }
  });
});

describe('pages of a history beyond the last', () => {
  const huge = ['1000001', '999999999999', '9007199254740993', '9'.repeat(30), '9'.repeat(400)];

  test('are empty, whatever their number', async () => {
    const stack = await createStack(app);
    for (let time = 0; time < 3; time++) {
      await ok(complete(app, await startUpdate(app, stack)));
      await ok(complete(app, await startUpdate(app, stack, { kind: 'preview' })));
    }
    for (const list of ['updates', 'updates/latest/previews']) {
      const read = async (parameters: string): Promise<unknown[]> =>
        (await ok(app.call('GET', `${stack.path}/${list}?${parameters}`, { auth: stack.auth }))).json.updates;
      expect(await read('pageSize=2&page=1')).toHaveLength(2);
      expect(await read('pageSize=2&page=2')).toHaveLength(1);
      expect(await read('pageSize=2&page=3')).toEqual([]);
      // Without a size the first page has everything.
      expect(await read('page=2')).toEqual([]);
      for (const page of huge) {
        expect(await read(`pageSize=1000&page=${page}`)).toEqual([]);
        expect(await read(`page=${page}`)).toEqual([]);
      }
      for (const page of ['-1', 'x', '1e3', '1.5', `${'9'.repeat(30)}x`])
        expect((await app.call('GET', `${stack.path}/${list}?page=${page}`, { auth: stack.auth })).status).toBe(400);
    }
  });
});

describe('pulumi cancel', () => {
  const asCancel = (stack: TestStack, agent = 'pulumi-cli/1 (3.276.0; linux; cmd=cancel)') =>
    app.call('GET', stack.path, { auth: stack.auth, headers: { 'user-agent': agent } });

  test('reports that an idle stack is idle, however often it was updated', async () => {
    const stack = await createStack(app);
    for (let time = 0; time < 2; time++) {
      for (const agent of [
        'pulumi-cli/1 (3.276.0; linux; cmd=cancel)',
        'pulumi-cli/1 (v3.277.0-alpha.1; linux; cmd=cancel; agent=claude)',
      ]) {
        const { status, json } = await asCancel(stack, agent);
        expect({ status, ...json }).toEqual({
          status: 409,
          code: 409,
          message: `No update of stack '${stack.organization}/proj/dev' is in progress, so there is nothing to cancel`,
        });
      }
      await ok(complete(app, await startUpdate(app, stack)));
    }
  });

  test('finds the running update, and other commands find the idle stack', async () => {
    const stack = await createStack(app);
    for (const agent of [
      'pulumi-cli/1 (3.276.0; linux; cmd=stack-ls)',
      'pulumi-cli/1 (3.276.0; linux; cmd=cancel-all)',
      'pulumi-cli/1 (3.142.0; linux)',
      'other/1 (cmd=cancel)',
    ])
      expect((await ok(asCancel(stack, agent))).json.activeUpdate).toBe('');
    const update = await startUpdate(app, stack);
    expect((await ok(asCancel(stack))).json.activeUpdate).toBe(update.id);
  });

  test('reveals nothing about a stack that does not exist or is hidden from the caller', async () => {
    const stack = await createStack(app);
    const stranger = { ...stack, auth: (await createStack(app)).auth };
    expect((await asCancel(stranger)).status).toBe(404);
    expect((await asCancel({ ...stack, path: `${stack.path}-none` })).status).toBe(404);
  });
});

test.each([
  [{ newProject: 'a b' }, '"a b" is not a valid project name'],
  [{ newName: 'fine', newProject: 'a/b' }, '"a/b" is not a valid project name'],
  [{ newName: 'a b' }, '"a b" is not a valid stack name'],
  [{ newName: 'other-org/proj/dev' }, 'can only be renamed within its organization'],
])('a rename to %j reports what is wrong with its target', async (body, expected) => {
  const stack = await createStack(app);
  const { status, json } = await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body });
  expect(status).toBe(400);
  expect(json.message).toContain(expected);
});

describe('a remote configuration', () => {
  test('is rejected when a stack is created, and nothing is created', async () => {
    const { auth, organization } = await createStack(app);
    const body = { stackName: 'remote', config: { environment: 'proj/dev' } };
    const refused = await app.call('POST', `/api/stacks/${organization}/proj`, { auth, body });
    expect(refused.status).toBe(400);
    expect(refused.json.message).toMatch(/no configuration of stacks.*Pulumi\.<stack>\.yaml.*--remote-config/);
    expect((await app.call('GET', `/api/stacks/${organization}/proj/remote`, { auth })).status).toBe(404);
    await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { ...body, config: null } }));
  });

  test('is rejected as an environment of ESC, too', async () => {
    const { auth, organization } = await createStack(app);
    const body = { stackName: 'escaped', createManagedEnvironment: true };
    const refused = await app.call('POST', `/api/stacks/${organization}/proj`, { auth, body });
    expect([refused.status, refused.json.message]).toEqual([400, expect.stringMatching(/ESC.*--esc-config/)]);
    expect((await app.call('GET', `/api/stacks/${organization}/proj/escaped`, { auth })).status).toBe(404);
    const sent = { ...body, createManagedEnvironment: false };
    await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: sent }));
  });
});

describe('calls of other products', () => {
  const S = '/api/stacks/o/p/s';
  const calls: readonly [string, string, RegExp][] = [
    ['POST', '/api/esc/environments/o/yaml/open', /ESC.*Pulumi\.<stack>\.yaml/],
    ['POST', '/api/esc/environments/o/yaml/check', /ESC/],
    ['GET', '/api/esc/environments/o/yaml/open/1', /ESC/],
    ['GET', '/api/esc/environments', /ESC/],
    ['POST', '/api/change-requests/o/r/submit', /ESC/],
    ['GET', `${S}/deployments/settings`, /Deployments/],
    ['POST', `${S}/deployments`, /Deployments/],
    ['POST', `${S}/deployments/drift/schedules`, /Deployments/],
    ['GET', '/api/orgs/o/agentPools/1', /Deployments/],
    ['GET', '/api/agents/signup', /Agent sign-up.*holdfast admin/],
    ['POST', '/api/agents/signup', /Agent sign-up/],
    ['POST', '/api/ai/chat/preview', /Neo/],
    ['POST', '/api/preview/agents/o/tasks', /Neo/],
    ['GET', '/api/preview/insights/o/accounts', /Insights/],
    ['GET', '/api/orgs/o/policyresults/issues', /policy/],
    ['GET', '/api/console/orgs/o/integrations/github-app', /Deployments/],
    ['GET', '/api/orgs/o/search/resources/parse', /does not support natural-language search/],
    ['GET', '/api/orgs/o/resources/summary', /does not count/],
    ['GET', '/api/orgs/o/templates', /no templates/],
    ['GET', '/api/orgs/o/template/download', /no templates/],
    ['POST', '/api/registry/packages/private/o/p/versions', /registry/],
    ['POST', '/api/registry/templates/private/o/p/versions/1.0.0/complete', /registry/],
    ['GET', '/api/preview/registry/packages/pulumi/pulumi/random/versions/latest', /registry/],
    ['POST', '/api/log-encryption-session/init', /logs/],
    ['PUT', `${S}/config`, /--remote-config/],
  ];

  test.each(calls)('%s %s returns a helpful message', async (method, url, expected) => {
    const { auth } = await createStack(app);
    const answers = await Promise.all([
      app.call(method, url, { auth, body: {} }),
      // Neither the token nor the dialect matters for routes that are not implemented.
      app.call(method, url, { body: '{' }),
      app.call(method, `${url}?x=1`, { accept: null }),
      app.call(method, url, { accept: contractAccept }),
    ]);
    for (const { status, json } of answers) {
      expect({ status, code: json.code }).toEqual({ status: 404, code: 404 });
      expect(json.message).toMatch(expected);
      expect(json.message.length).toBeLessThan(300);
    }
  });

  test('return the same for stacks that exist', async () => {
    const stack = await createStack(app);
    for (const suffix of ['deployments', 'deployments/settings', 'config']) {
      const ask = (path: string, auth?: string) =>
        app.call('PUT', `${path}/${suffix}`, auth === undefined ? {} : { auth });
      const [there, absent, stranger] = await Promise.all([
        ask(stack.path, stack.auth),
        ask(`${stack.path}-none`, stack.auth),
        ask(stack.path),
      ]);
      expect(absent.text).toBe(there.text);
      expect(stranger.text).toBe(there.text);
    }
  });

  test('are answered before their body has arrived', async () => {
    const answer = await server.send(head('POST', '/api/esc/environments/o/yaml/open', { length: 100 * 1024 * 1024 }));
    expect(answer?.status).toBe(404);
    expect(answer?.json.message).toContain('ESC');
  });

  test('paths that only start like theirs are unknown', async () => {
    for (const url of [
      '/api/escape',
      '/api/agents/signups',
      '/api/aix',
      `${S}/deploymentsx`,
      '/api/stacks/o/p/deployments/x/y/z',
    ]) {
      const { status, json } = await app.call('GET', url);
      expect({ url, status, message: json.message }).toEqual({
        url,
        status: 404,
        message: `There is no route GET ${url}`,
      });
    }
  });
});

test('the oldest and the newest CLI that are tested are the oldest without a warning and the latest', async () => {
  const oldestFirst = Object.values(pulumiVersions).toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const { json } = await ok(app.call('GET', '/api/cli/version'));
  const [oldest, latest] = [oldestFirst[0], oldestFirst.at(-1)];
  expect(json).toEqual({ latestVersion: latest, oldestWithoutWarning: oldest, latestDevVersion: latest });
});

// Releases before 3.231 ask below /api/preview, and fail on a 404 instead of saying that there is no such package.
test.each(['/api/registry', '/api/preview/registry'])('the registry at %s is empty', async (folder) => {
  const { auth } = await createStack(app);
  for (const list of ['packages', 'templates']) {
    const { json } = await ok(app.call('GET', `${folder}/${list}?limit=499&name=random`, { auth }));
    expect(json).toEqual({ [list]: [] });
  }
});

test.each([
  [0, undefined],
  [1, 1],
  [2, 2],
  // The newest version that the client knows: it can do with an older one.
  [3, 2],
])('to a client that knows journals up to version %s, the start responds %s', async (offered, given) => {
  const { auth, path } = await createStack(app);
  const { json } = await ok(app.call('POST', `${path}/update`, { auth, body: {} }));
  const url = `${path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', url, { auth, body: { journalVersion: offered } }));
  expect(started.json.journalVersion).toBe(given);
});

test('policy packs of a stack are advertised', async () => {
  const { json } = await ok(app.call('GET', '/api/capabilities'));
  expect(json.capabilities).toContainEqual({ capability: 'stack-policy-packs', version: 1 });
  const stack = await createStack(app);
  expect((await ok(app.call('GET', `${stack.path}/policypacks`, { auth: stack.auth }))).json).toEqual({
    requiredPolicies: [],
  });
});

describe('events by version', () => {
  const event = (sequence: number, message: string) => ({
    sequence,
    timestamp: 1,
    stdoutEvent: { message, color: 'never' },
  });
  const record = async (update: RunningUpdate, message: string) =>
    ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events: [event(0, message)] } }));
  const read = (stack: TestStack, version: string): Promise<TestResponse> =>
    app.call('GET', `${stack.path}/update/${version}/events`, { auth: stack.auth });

  test('are those of the update that created it', async () => {
    const [stack, other] = [await createStack(app), await createStack(app)];
    for (const message of ['first', 'second']) {
      const preview = await startUpdate(app, stack, { kind: 'preview' });
      await record(preview, 'of a preview');
      await ok(complete(app, preview));
      const update = await startUpdate(app, stack);
      await record(update, message);
      await ok(complete(app, update));
    }
    const running = await startUpdate(app, other);
    await record(running, 'elsewhere');
    for (const [version, message] of [
      ['1', 'first'],
      ['2', 'second'],
    ] as const) {
      const { json } = await ok(read(stack, version));
      expect(json.events.map((one: { stdoutEvent: object }) => one.stdoutEvent)).toEqual([{ message, color: 'never' }]);
    }
    expect((await ok(read(other, '1'))).json.events).toHaveLength(1);
    for (const version of ['0', '3', '01', '-1', '1.0', '999999999', '99999999999999999999', 'x'])
      expect({ version, status: (await read(stack, version)).status }).toEqual({ version, status: 404 });
    expect((await read({ ...stack, auth: other.auth }, '1')).status).toBe(404);
    await query(app, `update stacks set deleted_at = now() where id = (select stack_id from updates where id = $1)`, [
      running.id,
    ]);
    expect((await read(other, '1')).status).toBe(404);
  });
});

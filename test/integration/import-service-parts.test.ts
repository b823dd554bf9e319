import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { base64, encrypt, runUpdate, stateWith, testEnds } from '../support/import-ends.ts';
import { runImport } from '../support/import-run.ts';
import { type SourceFront, sendJson, startFront } from '../support/source-front.ts';
import { ok } from '../support/state.ts';

const { source, target, front, organization } = testEnds();

test('events of updates come as the engine sent them, and verify counts them', async () => {
  const ends = await organization('events');
  const dev = await ends.createStack('dev');
  const events = [
    { sequence: 0, timestamp: 1, preludeEvent: { config: {} } },
    {
      sequence: 1,
      timestamp: 2,
      diagnosticEvent: { urn: 'urn:pulumi:dev::proj::a:b:C::d', message: 'm', color: 'raw', severity: 'info' },
    },
    { sequence: 2, timestamp: 3, stdoutEvent: { message: 'out', color: 'raw' } },
  ];
  await runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), 1), {
    during: ({ lease, path }) => ok(source.call('POST', `${path}/events/batch`, { auth: lease, body: { events } })),
  });
  expect((await ends.run('--apply')).text).toBe('Imported 1 version of 1 stack into events.\n');
  const types = events.map((event) => Object.keys(event)[2]);
  expect((await ends.here('proj/dev/update/1/events')).events).toEqual(
    events.map((event, at) => ({ type: types[at], ...event })),
  );
  expect(await query(target, 'select type, event from engine_events order by sequence')).toEqual(
    events.map((event, at) => ({ type: types[at], event: JSON.stringify(event) })),
  );
  expect((await ends.run('--verify')).code).toBe(0);
  await query(target, 'delete from engine_events where sequence = 1');
  expect((await ends.run('--verify')).text).toContain('version 1 has another number of events');
});

test('a state that the CLI refuses comes in quarantine, until a later pass brings one that it accepts', async () => {
  const ends = await organization('quarantine');
  const dev = await ends.createStack('dev', { team: 'core' });
  const ciphertext = await encrypt(source, dev, '"a"');
  const broken = stateWith(dev, ciphertext, 1);
  broken.deployment.resources.reverse();
  await runUpdate(source, dev, broken);
  const reason = expect.stringContaining(
    'proj/dev: in quarantine, because the CLI refuses its newest state: urn:pulumi:dev::proj',
  );
  expect((await ends.run()).text).toContain('in quarantine, because the CLI refuses its newest state');
  const applied = await ends.run('--apply');
  expect([applied.code, applied.stdout]).toEqual([0, reason]);
  const exported = await ok(target.call('GET', `${dev.path}/export`, { auth: ends.authHere }));
  expect(exported.headers['x-pulumi-warning']).toContain(
    'was imported in quarantine, because the CLI refuses it: urn:pulumi',
  );
  expect((await ends.run('--verify')).code).toBe(0);
  // The mark stays while nothing new comes.
  expect((await ends.run('--apply')).stdout).toContain('in quarantine');
  expect((await ends.here('proj/dev')).tags).toMatchObject({ team: 'core', 'holdfast:quarantine': expect.any(String) });
  await runUpdate(source, dev, stateWith(dev, ciphertext, 2));
  expect((await ends.run('--apply')).text).toBe('Imported 1 version of 1 stack into quarantine.\n');
  const tags = { team: 'core', 'pulumi:project': 'proj' };
  expect((await ends.here('proj/dev')).tags).toEqual(tags);
  const changes = () => query(target, "select 1 from audit_events where action = 'stack.tags'");
  expect(await changes()).toHaveLength(1);
  // Tags that cannot be read say nothing about the ones here.
  await query(source, `update stacks set tags = '{"not valid":"x"}'`);
  await runUpdate(source, dev, stateWith(dev, ciphertext, 3));
  expect((await ends.run('--apply')).text).toContain('without its tags');
  expect([(await ends.here('proj/dev')).tags, await changes()]).toEqual([tags, [expect.anything()]]);
  await query(source, "update stacks set tags = '{}'");
});

test('a rollback deletes what an import brought, and no stack that was updated here', async () => {
  const ends = await organization('rollback');
  for (const name of ['one', 'two']) {
    const stack = await ends.createStack(name);
    await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), 1));
  }
  await ends.createStack('own');
  await ok(target.call('POST', '/api/stacks/rollback/proj', { auth: ends.authHere, body: { stackName: 'own' } }));
  await ends.run('--apply', '--stack', 'proj/one', '--stack', 'proj/two');
  const body = await ends.here('proj/two/export');
  await ok(target.call('POST', '/api/stacks/rollback/proj/two/import', { auth: ends.authHere, body }));
  const list = await ends.run('--rollback');
  expect([list.code, list.stdout]).toEqual([1, expect.stringContaining('proj/one: to delete')]);
  expect(list.stdout).toContain('proj/own: kept: it has no imported versions');
  expect(list.stdout).toContain('1 stack with 1 imported version to delete, 2 to keep. Nothing was changed.');
  await ends.here('proj/one');
  const rolledBack = await ends.run('--rollback', '--apply');
  expect(rolledBack.text).toContain('proj/two: kept: it was updated here since its import');
  expect(rolledBack.stdout).toContain('Deleted 1 stack with 1 imported version; kept 2.');
  expect((await target.call('GET', '/api/stacks/rollback/proj/one', { auth: ends.authHere })).status).toBe(404);
  expect(await ends.here('proj/two/updates')).toMatchObject({ updates: [{ version: 2 }, { version: 1 }] });
  const deletions = await query(
    target,
    `select object from audit_events where action = 'stack.delete' and details::text like '%importedFrom%'`,
  );
  expect(deletions).toEqual([{ object: 'rollback/proj/one' }]);
  // What was taken back can come again.
  expect((await ends.run('--apply', '--stack', 'proj/one')).text).toBe(
    'Imported 1 version of 1 stack into rollback.\n',
  );
});

test('a stack gets another name on the way, in every state', async () => {
  const ends = await organization('mapped');
  const dev = await ends.createStack('dev');
  const ciphertext = await encrypt(source, dev, '"hunter2"');
  for (const version of [1, 2]) await runUpdate(source, dev, stateWith(dev, ciphertext, version));
  const map = ['--map', 'proj/dev=shop/prod'];
  expect((await ends.run('--apply', ...map)).text).toBe('Imported 2 versions of 1 stack into mapped.\n');
  expect((await ends.here('shop/prod')).tags).toEqual({ 'pulumi:project': 'shop' });
  const { deployment } = await ends.here('shop/prod/export/1');
  expect(deployment.resources.map(({ urn }: { urn: string }) => urn)).toEqual([
    'urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod',
    'urn:pulumi:prod::shop::pulumi:index:Stash::a',
  ]);
  expect(deployment.secrets_providers.state).toMatchObject({ owner: 'mapped', project: 'shop', stack: 'prod' });
  const asked = { ciphertexts: [deployment.resources[1].inputs.key.ciphertext] };
  const path = '/api/stacks/mapped/shop/prod/batch-decrypt';
  const { plaintexts } = (await ok(target.call('POST', path, { auth: ends.authHere, body: asked }))).json;
  expect(Object.values(plaintexts)).toEqual([base64('"hunter2"')]);
  expect((await ends.run('--verify', ...map)).code).toBe(0);
  expect((await ends.run('--apply')).text).toMatch(/proj\/dev: .*is shop\/prod here/);
  await ok(source.call('POST', `${dev.path}/rename`, { auth: ends.auth, body: { newName: 'moved' } }));
  const moved = await ends.run('--apply');
  expect(moved.text).toMatch(/proj\/moved: .*is shop\/prod here/);
  expect((await ends.run('--apply', '--map', 'proj/moved=shop/prod')).text).toContain('Imported 1 version of 1 stack');
  expect((await ends.run('--map', 'proj/dev=prod')).stderr).toContain('It is not PROJECT/STACK=PROJECT/STACK.');
});

/** Answers in the shapes that the vendor documents for its own service. */
async function startVendor(others: Readonly<Record<string, unknown>> = {}): Promise<SourceFront> {
  const path = '/api/stacks/acme/shop/prod';
  const prod = { organization: 'acme', project: 'shop', stack: 'prod' };
  const user = { name: 'Ann Smith', githubLogin: 'ann', avatarUrl: 'https://avatars.example/ann' };
  const own = base64('v1-of-the-vendor');
  const foreign = base64('of another stack');
  const updateOf = (version: number) => ({
    info: {
      ...{ kind: 'update', startTime: 1_700_000_000 + version, endTime: 1_700_000_100 + version, result: 'succeeded' },
      ...{
        message: `change ${version}`,
        environment: { 'git.author': 'ann' },
        version,
        resourceChanges: { create: 2 },
      },
      config: { 'shop:key': { string: own, secret: true } },
    },
    ...{ updateID: `id-${version}`, version, latestVersion: 4, requestedBy: user },
  });
  const event = { sequence: 0, timestamp: 1_700_000_001, preludeEvent: { config: {} } };
  const answers: Readonly<Record<string, unknown>> = {
    '/api/user': {
      id: 'u',
      ...user,
      email: 'ann@shop.example',
      organizations: [{ ...user, githubLogin: 'acme' }],
      identities: ['github.com'],
    },
    '/api/user/stacks?organization=acme': {
      stacks: [{ id: 'x', orgName: 'elsewhere', projectName: 'shop', stackName: 'not-mine' }],
      continuationToken: 'a+b',
    },
    '/api/user/stacks?organization=acme&continuationToken=a%2Bb': {
      stacks: [
        { orgName: 'acme', projectName: 'shop', stackName: 'prod', lastUpdate: 1_700_000_004, resourceCount: 2 },
      ],
    },
    [path]: {
      id: 'y',
      orgName: 'acme',
      projectName: 'shop',
      stackName: 'prod',
      activeUpdate: 'id-4',
      tags: { 'gitHub:repo': 'shop' },
      version: 4,
    },
    [`${path}/updates?output-type=service&pageSize=100&page=1`]: {
      updates: [updateOf(4), updateOf(2), updateOf(1)],
      ...{ itemsPerPage: 100, total: 3 },
    },
    [`${path}/export/1`]: stateWith(prod, own, 1),
    [`${path}/export/2`]: stateWith(prod, foreign, 2),
    [`${path}/export/4`]: stateWith(prod, own, 4),
    [`${path}/update/id-1/events`]: { events: [event], continuationToken: null },
    [`${path}/update/id-2/events`]: { events: [], continuationToken: null },
    ...others,
  };
  return startFront((call, response) => {
    const key = call.url ?? '';
    if (call.headers.authorization !== 'token pul-test')
      return sendJson(response, { code: 401, message: 'Unauthorized' }, 401);
    if (!key.endsWith('/batch-decrypt'))
      return answers[key] === undefined
        ? sendJson(response, { code: 404, message: 'Not Found: Update not found' }, 404)
        : sendJson(response, answers[key]);
    call.setEncoding('utf8').once('data', (text: string) => {
      const { ciphertexts } = JSON.parse(text) as { ciphertexts: string[] };
      if (ciphertexts.includes(foreign))
        return sendJson(response, { code: 400, message: 'Bad Request: invalid ciphertext' }, 400);
      sendJson(response, { plaintexts: Object.fromEntries(ciphertexts.map((each) => [each, base64('"hunter2"')])) });
    });
  });
}

test("answers in the vendor's documented shapes are read, and what could not come is named", async () => {
  await using vendor = await startVendor();
  const auth = `token ${await target.createUser('acme', 'admin')}`;
  const run = (...options: string[]) => runImport(target, { url: vendor.url, token: 'pul-test' }, 'acme', ...options);
  const applied = await run('--apply');
  expect([applied.code, applied.stdout]).toEqual([
    1,
    expect.stringContaining('Imported 3 versions of 1 stack into acme.'),
  ]);
  expect(applied.stdout).toContain(
    'shop/prod: /api/stacks/acme/shop/prod/export/2: the source could not decrypt 1 secret',
  );
  expect(applied.stdout).toContain('/export/4: without its events: ');
  const { updates } = (await ok(target.call('GET', '/api/stacks/acme/shop/prod/updates', { auth }))).json;
  expect(updates.map(({ version }: { version: number }) => version)).toEqual([4, 2, 1]);
  expect(updates[2]).toMatchObject({
    ...{ kind: 'update', message: 'change 1', result: 'succeeded', startTime: 1_700_000_001, endTime: 1_700_000_101 },
    environment: { 'git.author': 'ann', 'import.requestedBy': 'ann' },
    resourceChanges: { create: 2 },
    config: { 'shop:key': { secret: true, object: false } },
  });
  const { tags } = (await ok(target.call('GET', '/api/stacks/acme/shop/prod', { auth }))).json;
  expect(tags).toEqual({ 'gitHub:repo': 'shop', 'pulumi:project': 'shop' });
  const events = (await ok(target.call('GET', '/api/stacks/acme/shop/prod/update/1/events', { auth }))).json.events;
  expect(events).toHaveLength(1);
  const kept = (await ok(target.call('GET', '/api/stacks/acme/shop/prod/export/2', { auth }))).json;
  expect(JSON.stringify(kept)).toContain(base64('of another stack'));
});

test('what a service leaves out, answers with null, or adds, stops no import', async () => {
  const path = '/api/stacks/acme/shop';
  const history = (stack: string) => `${path}/${stack}/updates?output-type=service&pageSize=100&page=1`;
  const prod = { organization: 'acme', project: 'shop', stack: 'odd' };
  const nothing = { message: null, environment: null, config: null, resourceChanges: null, version: null };
  const times = { startTime: 1_700_000_001, endTime: 1_700_000_002, result: 'succeeded', kind: 'update' };
  const absent = { updateID: null, requestedBy: null, stateDeletedAt: null, eventsDeletedAt: null };
  const config = { 'shop:none': null, 'shop:key': { string: base64('v1-of-the-vendor'), secret: true, object: null } };
  await using vendor = await startVendor({
    '/api/user': { githubLogin: 'ann', name: null, email: null, organizations: null, added: { by: 'a release' } },
    '/api/user/stacks?organization=acme': { stacks: null, continuationToken: 'a+b' },
    '/api/user/stacks?organization=acme&continuationToken=a%2Bb': {
      stacks: [
        null,
        ...['empty', 'missing', 'odd', 'strange'].map((stackName) => ({
          ...{ orgName: 'acme', projectName: 'shop', stackName, lastUpdate: null, links: null },
        })),
      ],
      continuationToken: null,
    },
    ...Object.fromEntries(['empty', 'odd', 'strange'].map((stack) => [`${path}/${stack}`, { tags: null, id: null }])),
    [`${path}/missing`]: null,
    [history('empty')]: { updates: null, itemsPerPage: null },
    [history('missing')]: {},
    [history('strange')]: { updates: { '1': 'not a list' } },
    [`${path}/empty/export`]: { version: 3, deployment: null },
    [`${path}/missing/export`]: { version: 3, deployment: { resources: null, manifest: null } },
    [history('odd')]: {
      updates: [
        { ...nothing, ...times, ...absent, info: null, version: 3 },
        { info: { ...nothing, ...times, config }, ...absent, version: 2, updateID: 'id-2', requestedBy: {} },
        { info: { ...nothing, ...times, startTime: null, kind: null }, version: 1, updateID: 'id-1' },
        { info: null, version: null },
        null,
      ],
    },
    ...Object.fromEntries(
      [1, 2, 3].map((version) => [
        `${path}/odd/export/${version}`,
        stateWith(prod, base64('v1-of-the-vendor'), version),
      ]),
    ),
    [`${path}/odd/update/id-1/events`]: { events: null },
    [`${path}/odd/update/id-2/events`]: null,
  });
  const auth = `token ${await target.createUser('odd', 'admin')}`;
  const from = { url: vendor.url, token: 'pul-test' };
  const run = (...options: string[]) => runImport(target, from, 'odd', '--source-organization', 'acme', ...options);
  const applied = await run('--apply');
  expect(applied.text).toContain(`shop/strange: it cannot be read: ${vendor.url}${history('strange')}`);
  expect(applied.text).toContain('/updates must be array');
  expect([applied.code, applied.text]).toEqual([
    1,
    expect.stringContaining('Imported 3 versions of 1 stack into odd.'),
  ]);
  expect(applied.text.split('\n')).toHaveLength(4);
  const { updates } = (await ok(target.call('GET', '/api/stacks/odd/shop/odd/updates', { auth }))).json;
  expect(updates.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1]);
  expect(updates[0]).toMatchObject({ message: '', environment: {}, config: {}, resourceChanges: {} });
  expect(Object.keys(updates[1].config)).toEqual(['shop:key']);
  for (const stack of ['empty', 'missing'])
    expect((await ok(target.call('GET', `/api/stacks/odd/shop/${stack}/updates`, { auth }))).json.updates).toEqual([]);
  expect((await run('--verify', '--stack', 'shop/odd')).text).toContain('no differences');
});

test('a page with null is not the last one, and a state that retention deletes in the source stops no second pass', async () => {
  const path = '/api/stacks/acme/shop/long';
  const long = { organization: 'acme', project: 'shop', stack: 'long' };
  const listed = (version: number, others = {}) => ({
    ...{ kind: 'update', result: 'succeeded', version, ...others },
    ...{ startTime: 1_700_000_000 + version, endTime: 1_700_000_000 + version },
  });
  const gone = (version: number) => listed(version, { stateDeletedAt: '2026-01-01T00:00:00Z' });
  const between = Array.from({ length: 99 }, (_, at) => gone(101 - at));
  const pages: { updates: unknown[] }[] = [{ updates: [null, ...between] }, { updates: [listed(2), listed(1)] }];
  await using vendor = await startVendor({
    '/api/user/stacks?organization=acme': { stacks: [{ orgName: 'acme', projectName: 'shop', stackName: 'long' }] },
    [path]: { tags: null },
    ...Object.fromEntries(
      pages.map((page, at) => [`${path}/updates?output-type=service&pageSize=100&page=${at + 1}`, page]),
    ),
    ...Object.fromEntries(
      [1, 2, 102].map((version) => [`${path}/export/${version}`, stateWith(long, base64('v1-of-the-vendor'), version)]),
    ),
  });
  await target.createUser('long', 'admin');
  const from = { url: vendor.url, token: 'pul-test' };
  const run = (...options: string[]) => runImport(target, from, 'long', '--source-organization', 'acme', ...options);
  const first = await run('--apply');
  expect(first.text).toContain('shop/long: without 99 updates: the source lacks their states');
  expect(first.text).toContain('Imported 2 versions of 1 stack into long.');
  const [newest, oldest] = pages as [{ updates: unknown[] }, { updates: unknown[] }];
  newest.updates = [listed(102), ...between];
  oldest.updates = [gone(2), gone(1)];
  expect((await run('--apply')).text).toContain('Imported 1 version of 1 stack into long.');
  expect((await run('--verify')).text).toContain('no differences');
  expect((await run('--rollback')).text).toContain('1 stack with 3 imported versions to delete, 0 to keep.');
});

test('a stack that the source lacks in the middle of its import, or whose newest version it refuses, stays unfinished', async () => {
  const ends = await organization('vanishing');
  const stack = await ends.createStack('dev');
  for (const version of [1, 2, 3])
    await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
  const unfinished = async () =>
    (
      await query<{ unfinished: boolean; version: number }>(
        target,
        `select s.import_unfinished as unfinished, s.stack_version as version from stacks s join projects p on p.id = s.project_id
         join organizations o on o.id = p.organization_id where o.name = 'vanishing'`,
      )
    )[0];
  const lacking = (response: ServerResponse) => {
    sendJson(response, { code: 404, message: 'Not found' }, 404);
    return true;
  };
  // Renamed after its newest state was read for the plan.
  let isGone = false;
  front().intercept = (call, response) => {
    isGone ||= (call.url ?? '').endsWith('/export/2');
    return isGone && (call.url ?? '').startsWith(stack.path) ? lacking(response) : false;
  };
  const first = await ends.run('--apply');
  expect([first.code, first.text]).toEqual([1, expect.stringContaining('interrupted: the source no longer has it')]);
  expect(await unfinished()).toMatchObject({ unfinished: true });

  let reads = 0;
  front().intercept = (call, response) =>
    (call.url ?? '').endsWith('/export/3') && ++reads > 1 ? lacking(response) : false;
  const second = await ends.run('--apply');
  expect([second.code, second.text]).toEqual([1, expect.stringContaining('/export/3: ')]);
  expect(await unfinished()).toEqual({ unfinished: true, version: 2 });

  front().intercept = () => false;
  expect((await ends.run('--apply')).text).toBe('Imported 1 version of 1 stack into vanishing.\n');
  expect(await unfinished()).toEqual({ unfinished: false, version: 3 });
  expect((await ends.run('--verify')).text).toContain('no differences');

  // For good: the text names the way out, which works.
  await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), 4));
  reads = 0;
  front().intercept = (call, response) =>
    (call.url ?? '').endsWith('/export/4') && ++reads > 1 ? lacking(response) : false;
  for (const text of ['it cannot be updated here until a pass has', 'its state cannot be read'])
    expect((await ends.run('--apply')).text).toMatch(
      new RegExp(`${text}.* this version, or a newer one, which .pulumi stack import. makes in the source`),
    );
  expect(await unfinished()).toEqual({ unfinished: true, version: 3 });
  const body = stateWith(stack, await encrypt(source, stack, '"a"'), 5);
  await ok(source.call('POST', `${stack.path}/import`, { auth: stack.auth, body }));
  expect((await ends.run('--apply')).text).toContain('Imported 1 version of 1 stack into vanishing.');
  expect(await unfinished()).toEqual({ unfinished: false, version: 5 });
});

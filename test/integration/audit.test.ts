import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { registerAudit } from '../../src/api/platform/audit-trail/audit-plugin.ts';
import { auditActions } from '../../src/shared/audit/audit-actions.ts';
import { listEvents, type StoredEvent } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { noteStatements } from '../support/statement-count.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp({ settings: { HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' } });
let stack: TestStack;

beforeAll(async () => {
  stack = await createStack(app);
});

/** What was recorded in the stack's organization since the last call. */
const seen = new Map<string, number>();
async function newEvents({ organization }: TestStack): Promise<StoredEvent[]> {
  const events = await listEvents(app, organization);
  const fresh = events.slice(seen.get(organization) ?? 0);
  seen.set(organization, events.length);
  return fresh;
}

const call = (method: string, path: string, body?: object, auth = stack.auth) =>
  app.call(method, `${stack.path}${path}`, { auth, ...(body ? { body } : {}) });

async function encrypted(): Promise<string> {
  return (await ok(call('POST', '/encrypt', { plaintext: 'c2VjcmV0' }))).json.ciphertext as string;
}

describe('routes', () => {
  interface Operation {
    readonly 'x-audit-action'?: string;
  }
  const operations = async () => {
    const document = (await ok(app.call('GET', '/api/openapi.json'))).json as {
      paths: Record<string, Record<string, Operation>>;
    };
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        route: `${method.toUpperCase()} ${path}`,
        action: operation['x-audit-action'],
      })),
    );
  };

  test('that may change something have an action, except writes of an update, encryption, renewals, uploads of archives and questions of passkeys', async () => {
    const changing = (await operations()).filter(({ route }) => !/^(GET|HEAD) /.test(route));
    expect(changing.length).toBeGreaterThan(15);
    const without = changing.filter(({ action }) => action === undefined);
    expect(without.map(({ route }) => route.replace(/.*\//, '')).toSorted()).toEqual([
      'batch',
      'batch-encrypt',
      'checkpoint',
      'checkpointdelta',
      'checkpointverbatim',
      'encrypt',
      'journalentries',
      'options',
      'options',
      'renew_lease',
      '{versionId}',
    ]);
  });

  test('that read a state have an action, and every action is one of the list', async () => {
    const found = await operations();
    const reads = found.filter(({ route }) => /^GET .*(export|auditlogs)/.test(route));
    // The others with `auditlogs` show events, which are not states.
    expect(
      Object.fromEntries(reads.map(({ route, action }) => [route.replace(/.*}\/(?=export|auditlogs)/, ''), action])),
    ).toEqual({
      export: 'stack.export',
      'export/{stackVersion}': 'stack.export',
      auditlogs: undefined,
      'auditlogs/v2': undefined,
      'auditlogs/export': 'audit.export',
      'auditlogs/v2/export': 'audit.export',
    });
    const actions = found.flatMap(({ action }) => action ?? []);
    expect(actions.filter((action) => !(action in auditActions))).toEqual([]);
  });

  test('that declare nothing stop the app from starting', async () => {
    const { default: Fastify } = await import('fastify');
    const bare = Fastify();
    registerAudit(bare as never, {} as never);
    expect(() => bare.post('/api/new', async () => '')).toThrow('does not declare its action in the audit log');
    expect(() => bare.get('/api/new', async () => '')).not.toThrow();
  });

  test('that forget to record their action cannot respond with success', async () => {
    const { default: Fastify } = await import('fastify');
    const bare = Fastify();
    bare.decorateRequest('caller', null as never);
    bare.decorateRequest('lease', null as never);
    registerAudit(bare as never, { config: app.context.config } as never);
    bare.post('/api/new', { config: { audit: 'stack.tags' } as never }, async () => 'done');
    expect((await bare.inject({ method: 'POST', url: '/api/new' })).statusCode).toBe(500);
  });
});

describe('each change and each read of a state', () => {
  afterEach(async () => void (await newEvents(stack)));

  test('is one event that says who, from where and what', async () => {
    expect(await newEvents(stack)).toMatchObject([
      { action: 'stack.create', object: `${stack.organization}/proj/dev` },
    ]);
    const headers = { 'user-agent': 'pulumi-cli/1 (3.276.0; linux)', 'x-forwarded-for': '203.0.113.9' };
    const answer = await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { a: 'b' }, headers }));
    const [event, ...others] = await newEvents(stack);
    expect(others).toEqual([]);
    const [owner] = await query(
      app,
      `select u.id, u.login, t.id as "tokenId" from users u join api_tokens t on t.user_id = u.id where u.login = $1`,
      [event?.login],
    );
    expect(event).toMatchObject({
      action: 'stack.tags',
      outcome: 'done',
      actor: 'user',
      user_id: owner?.['id'],
      token_id: owner?.['tokenId'],
      token_name: 'test',
      sign_in: 'token',
      role: 'admin',
      address: '203.0.113.9',
      user_agent: headers['user-agent'],
      object: `${stack.organization}/proj/dev`,
      request_id: answer.headers['x-pulumi-request-id'],
      details: { names: ['a'] },
    });
  });

  test('import, exports, rename and delete', async () => {
    const other = await createStack(app);
    const path = (rest: string) => `${other.path}${rest}`;
    const { auth } = other;
    await ok(app.call('POST', path('/import'), { auth, body: deployment(2) }));
    await ok(app.call('GET', path('/export'), { auth }));
    await ok(app.call('GET', path('/export/1'), { auth }));
    await ok(app.call('POST', path('/rename'), { auth, body: { newName: 'renamed' } }));
    await ok(app.call('DELETE', path('/../renamed?force=true').replace('dev/../', ''), { auth }));
    expect((await app.call('GET', path('/export'), { auth })).status).toBe(404);
    expect((await newEvents(other)).map(({ action, object, details }) => [action, object, details])).toMatchObject([
      ['stack.create', `${other.organization}/proj/dev`, { withState: false }],
      ['stack.import', `${other.organization}/proj/dev`, { stackVersion: 1, resources: 2 }],
      ['stack.export', `${other.organization}/proj/dev`, { stackVersion: 'newest' }],
      ['stack.export', `${other.organization}/proj/dev`, { stackVersion: 1 }],
      ['stack.rename', `${other.organization}/proj/dev`, { to: `${other.organization}/proj/renamed` }],
      ['stack.delete', `${other.organization}/proj/renamed`, { force: true }],
    ]);
  });

  test('an update is its creation, start and end, whatever it writes meanwhile', async () => {
    const environment = { 'ci.system': 'GitHub Actions', 'ci.build.id': '77', 'git.author': 'nobody' };
    const created = await ok(call('POST', '/update', { metadata: { message: 'm', environment } }));
    const id = created.json.updateID as string;
    const started = await ok(call('POST', `/update/${id}`, { journalVersion: 0 }));
    const lease = `update-token ${started.json.token}`;
    await ok(call('PATCH', `/update/${id}/checkpoint`, { isInvalid: false, ...deployment(1) }, lease));
    await ok(call('POST', `/update/${id}/renew_lease`, { duration: 100 }, lease));
    await ok(call('POST', `/update/${id}/complete`, { status: 'failed' }, lease));
    await ok(call('POST', `/update/${id}/complete`, { status: 'failed' }, lease));
    await ok(call('POST', `/update/${id}/cancel`));
    const events = await newEvents(stack);
    expect(events.map(({ action, sign_in }) => [action, sign_in])).toEqual([
      ['update.create', 'token'],
      ['update.start', 'token'],
      ['update.end', 'lease'],
    ]);
    const [first, , last] = events;
    expect(last).toMatchObject({ details: { status: 'failed', checkpoints: 1, kind: 'update' }, role: 'admin' });
    for (const event of events) {
      expect(JSON.parse(event['ci_run'] as string)).toEqual({ system: 'GitHub Actions', 'build.id': '77' });
      expect(event).toMatchObject({ update_id: id, login: first?.login, token_id: first?.['token_id'] });
    }
  });

  test('a cancelled update and an expired one are an event each', async () => {
    const cancelled = await startUpdate(app, stack);
    await ok(call('POST', `/update/${cancelled.id}/cancel`));
    const { id } = await startUpdate(app, stack);
    await query(app, `update updates set expires_at = now() - interval '1 second' where id = $1`, [id]);
    await ok(call('POST', '/import', deployment(0)));
    expect((await newEvents(stack)).map(({ action, actor }) => [action, actor])).toEqual([
      ['update.create', 'user'],
      ['update.start', 'user'],
      ['update.cancel', 'user'],
      ['update.create', 'user'],
      ['update.start', 'user'],
      ['update.expire', 'server'],
      ['stack.import', 'user'],
    ]);
  });
});

describe('secrets', () => {
  afterEach(async () => void (await newEvents(stack)));

  test('read outside an update are an event each', async () => {
    const ciphertext = await encrypted();
    await ok(call('POST', '/decrypt', { ciphertext }));
    await ok(call('POST', '/batch-decrypt', { ciphertexts: [ciphertext, ciphertext] }));
    await ok(call('POST', '/decrypt/log-decryption', { secretName: 'db:password' }));
    await ok(call('POST', '/decrypt/log-batch-decryption', { commandName: 'stack output' }));
    expect((await newEvents(stack)).map(({ action, details }) => [action, details])).toEqual([
      ['secret.decrypt', { values: 1, names: [] }],
      ['secret.decrypt', { values: 2, names: [] }],
      ['secret.show', { name: 'db:password', command: null }],
      ['secret.show', { name: null, command: 'stack output' }],
    ]);
  });

  test('read by an update are one event, with counts and names', async () => {
    const ciphertext = await encrypted();
    const update = await startUpdate(app, stack);
    await Promise.all(
      Array.from({ length: 5 }, () => ok(call('POST', '/batch-decrypt', { ciphertexts: [ciphertext] }))),
    );
    for (const secretName of ['a', 'b', 'a']) await ok(call('POST', '/decrypt/log-decryption', { secretName }));
    const other = `token ${await app.createUser(stack.organization, 'viewer', 'reader')}`;
    await ok(call('POST', '/decrypt', { ciphertext }, other));
    await ok(call('POST', `/update/${update.id}/complete`, { status: 'succeeded' }, update.lease));
    await ok(call('POST', '/decrypt', { ciphertext }));
    expect(
      (await newEvents(stack)).map(({ action, details, update_id }) => [action, update_id, details]),
    ).toMatchObject([
      ['update.create', update.id, {}],
      ['update.start', update.id, {}],
      ['secret.decrypt', null, { values: 1 }],
      ['secret.decrypt', update.id, { calls: 8, values: 5, names: ['a', 'b'] }],
      ['update.end', update.id, {}],
      ['secret.decrypt', null, { values: 1 }],
    ]);
    expect(await query(app, 'select 1 from audit_secret_reads')).toEqual([]);
  });

  test('read from elsewhere with the token of an update are events of their own, at once', async () => {
    const ciphertext = await encrypted();
    const update = await startUpdate(app, stack);
    const decrypt = (headers: Record<string, string>) =>
      ok(app.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext }, headers }));
    const runner = { 'user-agent': 'pulumi-cli/1 (3.276.0; linux)', 'x-forwarded-for': '203.0.113.9' };
    await decrypt(runner);
    await decrypt({ ...runner, 'x-forwarded-for': '198.51.100.7' });
    await decrypt({ ...runner, 'user-agent': 'curl' });
    await decrypt(runner);
    const read = async () => (await newEvents(stack)).filter(({ action }) => action === 'secret.decrypt');
    expect((await read()).map(({ address, user_agent }) => [address, user_agent])).toEqual([
      ['198.51.100.7', runner['user-agent']],
      ['203.0.113.9', 'curl'],
    ]);
    await ok(call('POST', `/update/${update.id}/complete`, { status: 'succeeded' }, update.lease));
    const [own] = await read();
    expect(own).toMatchObject({ address: '203.0.113.9', details: { calls: 2, values: 2 } });
  });

  test('read by a preview are recorded when its stack is deleted', async () => {
    const other = await createStack(app);
    const { auth } = other;
    await startUpdate(app, other, { kind: 'preview' });
    const { ciphertext } = (await ok(app.call('POST', `${other.path}/encrypt`, { auth, body: { plaintext: '' } })))
      .json;
    await ok(app.call('POST', `${other.path}/decrypt`, { auth, body: { ciphertext } }));
    await ok(app.call('DELETE', `${other.path}?force=true`, { auth }));
    expect((await newEvents(other)).map(({ action }) => action)).toEqual([
      'stack.create',
      'update.create',
      'update.start',
      'secret.decrypt',
      'stack.delete',
    ]);
  });
});

describe('without its event', () => {
  /** Makes the database refuse events while `work` runs. */
  async function refusing(work: () => Promise<void>): Promise<void> {
    await query(
      app,
      `create function refuse_events() returns trigger language plpgsql as
      $$ begin raise exception 'the disk of the audit log is full'; end $$`,
    );
    await query(
      app,
      'create trigger refuse before insert on audit_events for each row execute function refuse_events()',
    );
    try {
      await work();
    } finally {
      await query(app, 'drop function refuse_events cascade');
    }
  }

  test('no change is committed, and no read is answered', async () => {
    const ciphertext = await encrypted();
    const update = await startUpdate(app, stack);
    await query(app, 'delete from audit_secret_reads');
    const facts = () =>
      query(
        app,
        `select s.name, s.tags, s.stack_version, s.active_update_id, s.deleted_at, (select count(*) from updates) as updates,
           (select string_agg(status, ',' order by number) from updates) as states, (select count(*) from stacks) as stacks
         from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1`,
        [stack.organization],
      );
    const before = await facts();
    await refusing(async () => {
      const other = `token ${await app.createUser(stack.organization, 'admin')}`;
      const calls = [
        app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: 'more' } }),
        call('PATCH', '/tags', { x: 'y' }),
        call('POST', '/preview', {}),
        call('POST', `/update/${update.id}/cancel`),
        call('POST', `/update/${update.id}/complete`, { status: 'succeeded' }, update.lease),
      ];
      for (const answer of await Promise.all(calls)) expect(answer.status).toBeGreaterThanOrEqual(500);
      const reads = [
        call('GET', '/export', undefined),
        call('POST', '/decrypt', { ciphertext }, other),
        call('POST', '/decrypt/log-decryption', { secretName: 'a' }, other),
      ];
      for (const answer of await Promise.all(reads)) {
        expect(answer).toMatchObject({
          status: 503,
          json: { message: expect.stringContaining('could not be recorded') },
        });
        expect(answer.text).not.toContain('c2VjcmV0');
      }
    });
    expect(await facts()).toEqual(before);
    await ok(call('POST', `/update/${update.id}/complete`, { status: 'succeeded' }, update.lease));
    const idle = await facts();
    await refusing(async () => {
      for (const [method, path, body] of [
        ['POST', '/import', deployment(1)],
        ['POST', '/rename', { newName: 'other' }],
        ['DELETE', '?force=true', undefined],
      ] as const)
        expect((await call(method, path, body)).status).toBeGreaterThanOrEqual(500);
    });
    expect(await facts()).toEqual(idle);
    await newEvents(stack);
  });
});

test('writes of an update cost no statement more', async () => {
  const update = await startUpdate(app, stack, { journal: true });
  await newEvents(stack);
  const noted = noteStatements(app);
  const { lease } = update;
  const entries = { entries: [{ version: 1, kind: 0, sequenceID: 1, operationID: 1, state: null }] };
  await ok(call('PATCH', `/update/${update.id}/journalentries`, entries, lease));
  await ok(call('POST', `/update/${update.id}/events/batch`, { events: [{ sequence: 0, timestamp: 1 }] }, lease));
  expect(noted.begun.filter((name) => /audit|transaction/.test(name))).toEqual([]);
  expect(noted.begun.length).toBeGreaterThan(1);
  await ok(call('POST', `/update/${update.id}/cancel`));
  expect((await newEvents(stack)).map(({ action }) => action)).toEqual(['update.cancel']);
});

test('what a member may not do is recorded as refused, once for repeats', async () => {
  const viewer = `token ${await app.createUser(stack.organization, 'viewer', 'curious')}`;
  for (const _ of [1, 2, 3]) expect((await call('DELETE', '', undefined, viewer)).status).toBe(403);
  const outsider = `token ${await app.createUser('elsewhere', 'admin')}`;
  expect((await call('DELETE', '', undefined, outsider)).status).toBe(404);
  expect(await newEvents(stack)).toMatchObject([
    {
      action: 'stack.delete',
      outcome: 'refused',
      login: 'curious',
      role: 'viewer',
      object: `${stack.organization}/proj/dev`,
    },
  ]);
});

test('a refused call is recorded as what it asked for', async () => {
  const { auth, organization, project } = stack;
  const path = `/api/orgs/${organization}`;
  await ok(app.call('POST', `${path}/teams/pulumi`, { auth, body: { name: 'blue' } }));
  const viewer = `token ${await app.createUser(organization, 'viewer', 'wishful')}`;
  await newEvents(stack);
  const given = { projectName: project, stackName: 'dev', permission: 101 };
  const calls: [string, object, string][] = [
    // Refused before its body is read, which may add and remove.
    ['/grants', { remove: ['00000000-0000-4000-8000-000000000000'] }, 'grant.change'],
    ['/teams/blue', { newDisplayName: 'Blue' }, 'team.change'],
    ['/teams/blue', { memberAction: 'add', member: 'wishful' }, 'team.add'],
    ['/teams/blue', { memberChanges: [{ memberAction: 'remove', member: 'wishful' }] }, 'team.remove'],
    ['/teams/blue', { addStackPermission: given }, 'grant.add'],
    ['/teams/blue', { removeStack: given }, 'grant.remove'],
  ];
  for (const [target, body] of calls)
    expect((await app.call('PATCH', `${path}${target}`, { auth: viewer, body })).status).toBe(403);
  expect((await newEvents(stack)).map(({ action, outcome }) => [action, outcome])).toEqual(
    calls.map(([, , action]) => [action, 'refused']),
  );
});

test('an event outside all partitions is kept, and moves into its partition when that is added', async () => {
  const [{ month } = { month: '' }] = await query<{ month: string }>(
    app,
    `select to_char(now() at time zone 'UTC' + interval '10 months', 'YYYY-MM') as month`,
  );
  const [{ number } = { number: '' }] = await query<{ number: string }>(
    app,
    `insert into audit_events select (jsonb_populate_record(e, '{"occurred_at": "${month}-28T23:59:59Z", "number": 9000000000}')).*
     from audit_events e limit 1 returning number`,
  );
  const partition = () =>
    query(app, 'select tableoid::regclass::text as name from audit_events where number = $1', [number]);
  expect(await partition()).toEqual([{ name: 'audit_events_default' }]);
  expect(await query(app, `select add_audit_partition('${month}-01') as added`)).toEqual([{ added: true }]);
  expect(await query(app, `select add_audit_partition('${month}-01') as added`)).toEqual([{ added: false }]);
  expect(await partition()).toEqual([{ name: `audit_events_${month.replace('-', '_')}` }]);
  await query(app, 'delete from audit_events where number = $1', [number]);
});

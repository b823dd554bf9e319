import { randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { ask } from '../support/procedures.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, contractAccept, testApp } from '../support/test-app.ts';
import { cancel, complete, saveState } from '../support/update-calls.ts';

const app = testApp();

describe('Accept', () => {
  test.each([
    'application/vnd.pulumi+8',
    'application/vnd.pulumi+9',
    'application/vnd.pulumi+123',
    'application/vnd.service+8',
    'application/x-tar, application/vnd.pulumi+9',
    'application/json;q=0.9,application/vnd.service+8;q=0.1',
    'application/x-tar,\tapplication/vnd.service+8 ;charset=utf-8',
    'Application/Vnd.Pulumi+9',
  ])('%s is accepted', async (accept) => {
    expect((await app.call('GET', '/api/capabilities', { accept })).status).toBe(200);
  });

  test.each([
    null,
    '*/*',
    'application/json',
    'application/vnd.pulumi+7',
    'application/vnd.service+9',
    'application/vnd.service+80',
    'application/vnd.service+8x',
    'application/vnd.other+8',
    'application/vnd.pulumi',
    '',
  ])('%s returns 415 before any other check', async (accept) => {
    for (const path of ['/api/capabilities', '/api/user', '/api/stacks/a/b/c/update/d/checkpoint']) {
      const response = await app.call(path.endsWith('t') ? 'PATCH' : 'GET', path, { accept });
      expect(response.status).toBe(415);
      expect(response.json).toEqual({ code: 415, message: expect.stringContaining('vnd.pulumi+8') });
    }
  });

  test('health, metrics and the API description do not need it', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/api/openapi.json'])
      expect((await app.call('GET', path, { accept: null })).status).toBe(200);
  });

  test('the API description names every protocol path', async () => {
    const { json } = await app.call('GET', '/api/openapi.json', { accept: null });
    expect(json.openapi).toMatch(/^3\.1/);
    expect(Object.keys(json.paths)).toContain('/api/stacks/{organization}/{project}/{stack}/import');
  });
});

describe('the two dialects', () => {
  const inBoth = async <T>(work: (accept: string, stack: TestStack) => Promise<T>): Promise<[cli: T, contract: T]> => [
    await work(cliAccept, await createStack(app)),
    await work(contractAccept, await createStack(app)),
  ];
  const create = async (stack: TestStack, accept: string, kind = 'update', body: object = {}): Promise<string> => {
    const { json } = await ok(app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, accept, body }));
    return `${stack.path}/update/${json.updateID}`;
  };

  test('start: version and tokenExpiration', async () => {
    const [cli, contract] = await inBoth(async (accept, stack) => {
      const path = await create(stack, accept);
      return (await ok(app.call('POST', path, { auth: stack.auth, accept, body: {} }))).json;
    });
    expect(cli.version).toBe(1);
    expect(Number.isInteger(cli.tokenExpiration)).toBe(true);
    expect(cli.tokenExpiration - Date.now() / 1000).toBeGreaterThan(250);
    expect(contract.version).toBe(0);
    expect(new Date(contract.tokenExpiration).toISOString()).toBe(contract.tokenExpiration);
  });

  test('renew: tokenExpiration', async () => {
    const [cli, contract] = await inBoth(async (accept, stack) => {
      const update = await startUpdate(app, stack);
      const options = { auth: update.lease, accept, body: { token: '', duration: 300 } };
      return (await ok(app.call('POST', `${update.path}/renew_lease`, options))).json;
    });
    expect(cli.tokenExpiration).toEqual(expect.any(Number));
    expect(contract.tokenExpiration).toMatch(/^\d{4}-.*Z$/);
  });

  test('stack list: lastUpdate', async () => {
    const stack = await createStack(app);
    const list = async (accept: string) => {
      const { json } = await ok(app.call('GET', '/api/user/stacks', { auth: stack.auth, accept }));
      return json.stacks[0];
    };
    for (const accept of [cliAccept, contractAccept]) expect(await list(accept)).not.toHaveProperty('lastUpdate');
    const update = await startUpdate(app, stack);
    expect((await list(cliAccept)).lastUpdate).toBe(0);
    expect((await list(contractAccept)).lastUpdate).toEqual({
      kind: 'update',
      status: 'running',
      startTime: expect.any(Number),
    });
    await ok(complete(app, update));
    expect((await list(cliAccept)).lastUpdate).toBeGreaterThan(1_700_000_000);
    expect((await list(contractAccept)).lastUpdate.status).toBe('succeeded');
  });

  test('previews run beside an update for the CLI, and lock for the contract', async () => {
    for (const [kind, body] of [
      ['preview', {}],
      ['update', { options: { dryRun: true } }],
      ['destroy', { options: { dryRun: true } }],
    ] as const) {
      const stack = await createStack(app);
      await startUpdate(app, stack);
      const post = (accept: string) => app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, accept, body });
      expect((await post(contractAccept)).status).toBe(409);
      expect((await post(cliAccept)).status).toBe(200);
    }
    const stack = await createStack(app);
    const path = await create(stack, contractAccept, 'preview');
    expect((await getStack(app, stack)).activeUpdate).toBe(path.split('/').at(-1));
    expect((await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} })).status).toBe(409);
    await ok(cancel(app, stack, { path }));
    expect((await getStack(app, stack)).activeUpdate).toBe('');
  });

  test('a preview of the contract needs the permission for updates, because it locks', async () => {
    const stack = await createStack(app);
    const scopes = [{ permissions: ['preview'], stacks: '*/*' }];
    const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: stack.auth, body: { scopes } }));
    const auth = `token ${json.tokenValue}`;
    for (const [path, body] of [
      ['preview', {}],
      ['update', { options: { dryRun: true } }],
    ] as const) {
      const post = (accept: string) => app.call('POST', `${stack.path}/${path}`, { auth, accept, body });
      expect((await post(contractAccept)).status).toBe(403);
      expect((await post(cliAccept)).status).toBe(200);
    }
    const path = await create(stack, contractAccept, 'preview');
    const start = (as: string) => app.call('POST', path, { auth: as, accept: contractAccept, body: {} });
    const refused = await start(auth);
    expect([refused.status, refused.json.message]).toEqual([403, expect.stringContaining('the permission write')]);
    const started = await ok(start(stack.auth));
    await query(
      app,
      `do $$ begin
         set local session_replication_role = replica;
         update updates set token_id = (select id from api_tokens where scopes is not null order by created_at desc limit 1)
         where id = '${path.split('/').at(-1)}';
       end $$`,
    );
    const lease = `update-token ${started.json.token}`;
    const renewal = { auth: lease, accept: contractAccept, body: { duration: 300 } };
    expect((await app.call('POST', `${path}/renew_lease`, renewal)).status).toBe(403);
  });

  test('whoever may only preview cancels no preview that locks its stack', async () => {
    const stack = await createStack(app);
    const scopes = [{ permissions: ['preview'], stacks: '*/*' }];
    const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: stack.auth, body: { scopes } }));
    const previewer = { ...stack, auth: `token ${json.tokenValue}` };
    const locking = await create(stack, contractAccept, 'preview');
    const start = { auth: stack.auth, accept: contractAccept, body: {} };
    const { token } = (await ok(app.call('POST', locking, start))).json;
    const permission = async (path: string) => {
      const updateId = path.split('/').at(-1);
      const ref = { organization: stack.organization, project: stack.project, stack: stack.stack, updateId };
      return (await ask(app, stack.auth.slice('token '.length), 'updates.get', ref)).data.permission;
    };
    for (const path of [locking, locking.replace('/update/', '/preview/')]) {
      const refused = await cancel(app, previewer, { path });
      expect([refused.status, refused.json.message]).toEqual([403, expect.stringContaining('the permission write')]);
    }
    const renewal = { auth: `update-token ${token}`, accept: contractAccept, body: { duration: 300 } };
    await ok(app.call('POST', `${locking}/renew_lease`, renewal));
    expect(await permission(locking)).toBe('write');
    await ok(cancel(app, stack, { path: locking }));
    const beside = await create(stack, cliAccept, 'preview');
    expect(await permission(beside)).toBe('preview');
    await ok(cancel(app, previewer, { path: beside }));
  });

  test('a preview of the contract stores no state that it may not commit', async () => {
    const stack = await createStack(app);
    const path = await create(stack, contractAccept, 'preview');
    const { json } = await ok(app.call('POST', path, { auth: stack.auth, accept: contractAccept, body: {} }));
    const auth = `update-token ${json.token}`;
    const before = await query(app, 'select key from blobs');
    const state = { version: 3, deployment: { resources: [], note: randomBytes(2 ** 20).toString('base64') } };
    for (const kind of ['checkpoint', 'checkpointverbatim']) {
      const body = { ...state, sequenceNumber: 1 };
      const answer = await app.call('PATCH', `${path}/${kind}`, { auth, accept: contractAccept, body });
      expect([answer.status, answer.json.message]).toEqual([409, 'A preview writes no state']);
    }
    expect(await query(app, 'select key from blobs')).toEqual(before);
    const delta = { sequenceNumber: 2, deploymentDelta: [], checkpointHash: '0'.repeat(64) };
    const answer = await app.call('PATCH', `${path}/checkpointdelta`, { auth, accept: contractAccept, body: delta });
    expect(answer.status).toBe(400);
  });

  test('delete without a force parameter keeps resources for the CLI only', async () => {
    const [cli, contract] = await inBoth(async (accept, stack) => {
      const update = await startUpdate(app, stack);
      await ok(saveState(app, update, 1));
      await ok(complete(app, update));
      return (await app.call('DELETE', stack.path, { auth: stack.auth, accept })).status;
    });
    expect([cli, contract]).toEqual([400, 204]);
  });

  test('the contract accepts tags and new names only in its own form, the CLI’s dialect in either', async () => {
    for (const [accept, body, isTaken] of [
      [cliAccept, { a: 'b' }, true],
      [cliAccept, { tags: { a: 'b' } }, true],
      [contractAccept, { tags: { a: 'b' } }, true],
      [contractAccept, { tags: { a: 'b' }, unknown: 1 }, true],
      [contractAccept, { a: 'b' }, false],
      [contractAccept, { tags: 'b' }, false],
      [contractAccept, { tags: { a: 1 } }, false],
      [contractAccept, { tags: ['b'] }, false],
      [contractAccept, {}, false],
    ] as const) {
      const stack = await createStack(app);
      const { status } = await app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, accept, body });
      expect({ body, status }).toEqual({ body, status: isTaken ? 204 : 400 });
      expect((await getStack(app, stack)).tags).toEqual(isTaken ? { a: 'b' } : {});
    }
    for (const [accept, body, isTaken] of [
      [cliAccept, { newName: 'next', newProject: 'other' }, true],
      [cliAccept, { newName: 'ORG/other/next' }, true],
      [contractAccept, { newName: 'ORG/other/next' }, true],
      [contractAccept, { newName: 'next' }, false],
      [contractAccept, { newName: 'next', newProject: 'other' }, false],
      [contractAccept, { newName: 'other/next' }, false],
      [contractAccept, { newName: 'ORG/other/next/' }, false],
      [contractAccept, { newName: '/other/next' }, false],
      [contractAccept, { newName: '' }, false],
      [contractAccept, { newProject: 'other' }, false],
    ] as const) {
      const stack = await createStack(app);
      const text = JSON.stringify(body).replace('ORG', stack.organization);
      const { status } = await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, accept, body: text });
      expect({ body, status }).toEqual({ body, status: isTaken ? 204 : 400 });
      const path = isTaken ? `/api/stacks/${stack.organization}/other/next` : stack.path;
      await ok(app.call('GET', path, { auth: stack.auth, accept }));
    }
  });

  test('renew: the contract does not accept a duration of null as an integer', async () => {
    for (const [accept, status] of [
      [cliAccept, 200],
      [contractAccept, 400],
    ] as const) {
      const update = await startUpdate(app, await createStack(app));
      const renew = (body: object) =>
        app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, accept, body });
      expect((await renew({ duration: null })).status).toBe(status);
      expect((await renew({})).status).toBe(200);
    }
  });

  test('history: the contract’s includes previews', async () => {
    const stack = await createStack(app);
    const { auth, path } = stack;
    const update = await startUpdate(app, stack);
    await ok(complete(app, update));
    const preview = await startUpdate(app, stack, { kind: 'preview' });
    const dryRun = await create(stack, cliAccept, 'destroy', { options: { dryRun: true } });
    const last = dryRun.split('/').at(-1);
    const read = async (accept: string, url: string) =>
      (await ok(app.call('GET', `${path}/${url}`, { auth, accept }))).json;
    const ids = async (accept: string, query = '') =>
      (await read(accept, `updates${query}`)).updates.map(({ updateID }: { updateID: string }) => updateID);
    expect(await ids(contractAccept)).toEqual([last, preview.id, update.id]);
    expect(await ids(contractAccept, '?pageSize=2&page=2')).toEqual([update.id]);
    expect(await ids(cliAccept)).toEqual([update.id]);
    expect((await read(contractAccept, 'updates/latest')).info.updateID).toBe(last);
    expect((await read(cliAccept, 'updates/latest')).info.updateID).toBe(update.id);
  });
});

describe('responses', () => {
  test('a missing object returns 404 with a JSON body', async () => {
    const { auth, path } = await createStack(app);
    for (const [method, url] of [
      ['GET', '/api/nothing'],
      ['GET', '/api/orgs/acme/members'],
      ['GET', '/nothing'],
      ['POST', `${path}/nothing`],
      ['DELETE', '/api/user'],
      ['PUT', path],
      ['PATCH', `${path}/resource-import/00000000-0000-4000-8000-000000000000/checkpoint`],
    ] as const) {
      const response = await app.call(method, url, { auth });
      expect({ url, status: response.status }).toEqual({ url, status: 404 });
      expect(response.json).toEqual({ code: 404, message: expect.any(String) });
      expect(response.headers['content-type']).toMatch(/^application\/json/);
    }
  });

  test.each([
    '/api/stacks/%ff/b/c',
    '/api/stacks/%00/b/c',
    '/api/stacks/ORG/%00/c',
    '/api/stacks/ORG/b/c%00d/export',
    '/api/user/stacks?project=%00',
    `/api/stacks/ORG/b/${'x'.repeat(300)}`,
  ])('%s is the caller’s fault', async (url) => {
    const { auth, organization } = await createStack(app);
    const response = await app.call('GET', url.replace('ORG', organization), { auth });
    expect([400, 404, 414]).toContain(response.status);
    expect(response.json.code).toBe(response.status);
  });

  test('text that Postgres cannot store is the caller’s fault', async () => {
    const stack = await createStack(app);
    const body = { metadata: { message: 'a\0b', environment: { 'a\0b': '\0' } } };
    const created = await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body });
    expect(created.status).toBeLessThan(500);
    const renamed = await app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'a\0b' } });
    expect(renamed.status).toBe(400);
  });

  test.each([
    ['not JSON', '{"stackName":'],
    ['two values', '{"stackName":"a"}{}'],
    ['not an object', '[]'],
    ['a member of the wrong type', '{"stackName":1}'],
    ['nothing', ''],
    ['too deep', `{"tags":${'['.repeat(600)}${']'.repeat(600)}}`],
    ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ])('a body that is %s returns 400', async (_name, body) => {
    const { auth, organization } = await createStack(app);
    const response = await app.call('POST', `/api/stacks/${organization}/proj`, { auth, body });
    expect(response.status).toBe(400);
    expect(response.json).toEqual({ code: 400, message: expect.any(String) });
  });

  test('every response has its own X-Pulumi-Request-ID, errors too', async () => {
    const ids = new Set<unknown>();
    for (const url of ['/healthz', '/api/capabilities', '/api/user', '/api/nothing', '/api/stacks/%ff/b/c'])
      ids.add((await app.call('GET', url)).headers['x-pulumi-request-id']);
    expect(ids.size).toBe(5);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('HEAD of a project returns a status without a body', async () => {
    const { auth, organization } = await createStack(app);
    const head = (project: string) => app.call('HEAD', `/api/stacks/${organization}/${project}`, { auth });
    for (const [project, status] of [
      ['proj', 200],
      ['none', 404],
    ] as const) {
      const response = await head(project);
      expect([response.status, response.text]).toEqual([status, '']);
    }
  });
});

describe('gzip', () => {
  test('is accepted under both names, and no other encoding is', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const url = `${update.path}/checkpoint`;
    const { body } = gzipped('{"version":3,"deployment":{"resources":[]}}');
    const send = (encoding: string, bytes = body) =>
      app.call('PATCH', url, { auth: update.lease, body: bytes, headers: { 'content-encoding': encoding } });
    for (const encoding of ['gzip', 'x-gzip', 'GZIP']) expect((await send(encoding)).status).toBe(204);
    for (const encoding of ['br', 'deflate', 'gzip, gzip']) expect((await send(encoding)).status).toBe(415);
    for (const broken of [body.subarray(0, -6), Buffer.from('plain'), Buffer.concat([body, Buffer.from('x')])]) {
      const response = await send('gzip', broken);
      expect([response.status, response.json.code]).toEqual([400, 400]);
    }
  });

  test('is sent when requested, never for an empty body', async () => {
    const url = await app.app.listen({ host: '127.0.0.1', port: 0 });
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 50));
    const headers = { accept: cliAccept, 'accept-encoding': 'gzip', 'content-type': 'application/json' };
    const send = (method: string, path: string, authorization: string, body?: string) =>
      new Promise<{ response: IncomingMessage; bytes: Buffer }>((resolve, reject) => {
        const request = httpRequest(`${url}${path}`, { method, headers: { ...headers, authorization } }, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => resolve({ response, bytes: Buffer.concat(chunks) }));
        });
        request.on('error', reject);
        request.end(body);
      });
    const exported = await send('GET', `${stack.path}/export`, stack.auth);
    expect(exported.response.headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(exported.bytes).toString()).deployment.resources).toHaveLength(50);
    for (const [method, path, auth, body] of [
      ['PATCH', `${update.path}/checkpoint`, update.lease, '{"version":3,"deployment":{}}'],
      ['HEAD', `/api/stacks/${stack.organization}/proj`, stack.auth, undefined],
      ['HEAD', `/api/stacks/${stack.organization}/none`, stack.auth, undefined],
      ['POST', `${update.path}/complete`, update.lease, '{"status":"succeeded"}'],
      ['DELETE', `${stack.path}?force=true`, stack.auth, undefined],
    ] as const) {
      const { response, bytes } = await send(method, path, auth, body);
      expect({ path, encoding: response.headers['content-encoding'], length: bytes.length }).toEqual({
        path,
        encoding: undefined,
        length: 0,
      });
    }
  });
});

import { beforeAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { deleteStack } from '../support/deleted-stacks.ts';
import { grant, type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const lines: string[] = [];
const app = testApp({
  settings: { HOLDFAST_PUBLIC_URL: 'https://holdfast.example.com/', HOLDFAST_DELETED_STACK_DAYS: '7' },
  log: { write: (line) => void lines.push(line) },
});
let admin: Person;
let stack: TestStack;

const refOf = ({ organization, project, stack: name } = stack) => ({ organization, project, stack: name });
const get = (url: string, headers: Record<string, string> = {}) => app.call('GET', url, { accept: null, headers });
const badge = (token: string) => get(`/api/embeds/badge.svg?token=${token}`);
const feed = (token: string) => get(`/api/embeds/updates.atom?token=${token}`);
const wordOf = ({ text }: TestResponse) => /<title>pulumi: ([^<]*)<\/title>/.exec(text)?.[1];

async function create(procedure: string, input: object, by = admin.token): Promise<{ id: string; token: string }> {
  const { data, error } = await command(app, by, `embeds.${procedure}`, input);
  expect(error).toBeNull();
  return data;
}

async function stackIn(organization: string, name: string): Promise<TestStack> {
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth: admin.auth, body: { stackName: name } }));
  return { ...stack, organization, stack: name, auth: admin.auth, path: `/api/stacks/${organization}/proj/${name}` };
}

async function run(at: TestStack, status: string): Promise<void> {
  await ok(complete(app, await startUpdate(app, at), status));
}

beforeAll(async () => {
  stack = await createStack(app);
  admin = await person(app, stack.organization, 'admin');
});

test('a badge says the status of the last update, under any name of its stack, and nothing after its end', async () => {
  const at = await stackIn(stack.organization, 'shown');
  const { id, token } = await create('createOfStack', { ...refOf(at), kind: 'badge' });
  const first = await badge(token);
  expect([first.status, wordOf(first)]).toEqual([200, 'no updates']);
  expect(first.headers).toMatchObject({
    ...{ 'content-type': 'image/svg+xml; charset=utf-8', 'cache-control': 'public, max-age=60' },
    ...{ 'cross-origin-resource-policy': 'cross-origin', 'x-content-type-options': 'nosniff' },
    'content-security-policy': expect.stringContaining("default-src 'none'"),
  });
  const update = await startUpdate(app, at);
  expect(wordOf(await badge(token))).toBe('running');
  await ok(complete(app, update, 'failed'));
  expect(wordOf(await badge(token))).toBe('failed');
  await run(at, 'succeeded');
  const last = await badge(token);
  expect(wordOf(last)).toBe('succeeded');
  expect(last.text).not.toContain(at.organization);
  expect(last.text).not.toContain('shown');
  const again = await get(`/api/embeds/badge.svg?token=${token}`, { 'if-none-match': `"x", ${last.headers['etag']}` });
  expect([again.status, again.text]).toEqual([304, '']);

  await ok(app.call('POST', `${at.path}/rename`, { auth: admin.auth, body: { newName: 'renamed' } }));
  expect(wordOf(await badge(token))).toBe('succeeded');
  const renamed = { ...at, stack: 'renamed', path: at.path.replace(/shown$/, 'renamed') };
  expect((await ask(app, admin.token, 'embeds.ofStack', refOf(renamed))).data.items).toEqual([
    { id, kind: 'badge', createdBy: admin.login, createdAt: expect.any(String) },
  ]);
  // The maker's account does not matter: it tells nothing that only they may know.
  await query(app, 'update embeds set created_by = null where id = $1', [id]);
  expect(wordOf(await badge(token))).toBe('succeeded');

  const unknown = await badge(`${token.slice(0, -1)}!`);
  await ok(deleteStack(app, renamed));
  for (const response of [
    ...[await badge(token), await badge(''), await badge((await create('create', refOf())).token)],
    ...[await get('/api/embeds/badge.svg'), unknown],
  ]) {
    expect([response.status, wordOf(response), response.text]).toEqual([404, 'unknown', unknown.text]);
    expect(response.headers['cache-control']).toBe('public, max-age=60');
  }
});

test('the token is stored as a hash and logged nowhere; a badge or feed ends when it is revoked', async () => {
  const made = [
    await create('createOfStack', { ...refOf(), kind: 'badge' }),
    await create('createOfStack', { ...refOf(), kind: 'feed' }),
  ];
  const [shown, listed] = made as [(typeof made)[0], (typeof made)[0]];
  expect((await badge(shown.token)).status).toBe(200);
  expect((await feed(listed.token)).status).toBe(200);
  // Each kind has tokens of its own.
  expect([(await badge(listed.token)).status, (await feed(shown.token)).status]).toEqual([404, 404]);
  const rows = JSON.stringify(await query(app, `select *, encode(token_hash, 'escape') as text from embeds`));
  const audit = JSON.stringify(await query(app, 'select * from audit_events'));
  expect(audit).toContain(shown.id);
  for (const { id, token } of made) {
    for (const text of [rows, audit, lines.join('\n')]) expect(text).not.toContain(token);
    expect((await command(app, admin.token, 'embeds.revoke', { ...refOf(), id })).status).toBe(404);
    expect((await command(app, admin.token, 'embeds.revokeOfStack', { ...refOf(), id })).status).toBe(200);
    expect((await command(app, admin.token, 'embeds.revokeOfStack', { ...refOf(), id })).status).toBe(404);
  }
  expect([(await badge(shown.token)).status, (await feed(listed.token)).status]).toEqual([404, 404]);
  const { items } = (await ask(app, admin.token, 'audit.list', { ...refOf(), limit: 10 })).data;
  expect(items.map(({ action }: { action: string }) => action)).toEqual(
    expect.arrayContaining(['embed.create', 'embed.revoke']),
  );
});

test('a feed lists the last updates as Atom, escaped, with ids that stay', async () => {
  const organization = `${stack.organization}-feed`;
  admin = await person(app, organization, 'admin');
  const [one, other] = [await stackIn(organization, 'one'), await stackIn(organization, 'other')];
  await run(one, 'succeeded');
  await run(other, 'failed');
  await ok(app.call('POST', `${one.path}/preview`, { auth: admin.auth, body: {} }));
  const [row] = await query<{ id: string; ended: Date }>(
    app,
    `update updates u set message = $1 from stacks s where s.id = u.stack_id and s.name = 'other' and u.organization_id = $2
     returning u.id, u.ended_at as ended`,
    ['</summary><script>&\u0001 "x"', admin.organizationId],
  );
  const { token } = await create('create', { organization });
  const response = await feed(token);
  expect(response.headers).toMatchObject({
    'content-type': 'application/atom+xml; charset=utf-8',
    'cache-control': 'private, max-age=60',
  });
  const { text } = response;
  expect(text).toContain(`<title>Updates of ${organization}</title>\n<updated>${row?.ended.toISOString()}</updated>`);
  expect(text).toContain('<summary type="text">&#60;/summary&#62;&#60;script&#62;&#38; &#34;x&#34;</summary>');
  expect([...text.matchAll(/<title>(.*)<\/title>/g)].map(([, title]) => title).slice(1)).toEqual([
    'proj/other: Update 1 failed',
    'proj/one: Update 1 succeeded',
  ]);
  expect(text).toContain(`<id>urn:uuid:${row?.id}</id>`);
  expect(text).toContain(`href="https://holdfast.example.com/${organization}/proj/other/updates/1"`);
  const same = await get(`/api/embeds/updates.atom?token=${token}`, {
    'if-none-match': String(response.headers['etag']),
  });
  expect(same.status).toBe(304);
  const ofStack = await create('createOfStack', { ...refOf(one), kind: 'feed' });
  expect([...(await feed(ofStack.token)).text.matchAll(/<entry>/g)]).toHaveLength(1);
});

test('a feed shows what its creator may read now, and ends with their role or membership', async () => {
  const organization = `${stack.organization}-rights`;
  admin = await person(app, organization, 'admin');
  const [open, secret] = [await stackIn(organization, 'open'), await stackIn(organization, 'secret')];
  for (const each of [open, secret]) await run(each, 'succeeded');
  const maker = await person(app, organization, 'admin');
  const all = await create('create', { organization }, maker.token);
  const one = await create('createOfStack', { ...refOf(secret), kind: 'feed' }, maker.token);
  const titles = async (token: string) => {
    const { status, text } = await feed(token);
    return [status, ...[...text.matchAll(/<title>(proj.*) 1 succeeded<\/title>/g)].map(([, title]) => title)];
  };
  expect(await titles(all.token)).toEqual([200, 'proj/secret: Update', 'proj/open: Update']);
  expect(await titles(one.token)).toEqual([200, 'proj/secret: Update']);
  await grant(app, maker.organizationId, { userId: maker.userId }, 'deny', ['read'], { stacks: 'proj/secret' });
  expect(await titles(all.token)).toEqual([200, 'proj/open: Update']);
  expect(await feed(one.token)).toMatchObject({ status: 404, text: '' });
  const ofOpen = await create('createOfStack', { ...refOf(open), kind: 'feed' }, maker.token);
  await query(app, `update memberships set role = 'member' where user_id = $1`, [maker.userId]);
  expect(await titles(all.token)).toEqual([404]);
  expect(await titles(ofOpen.token)).toEqual([200, 'proj/open: Update']);
  await query(app, 'update users set deactivated_at = now() where id = $1', [maker.userId]);
  expect(await titles(ofOpen.token)).toEqual([404]);
  await query(app, 'update users set deactivated_at = null where id = $1', [maker.userId]);
  expect(await titles(ofOpen.token)).toEqual([200, 'proj/open: Update']);
  await query(app, 'delete from memberships where user_id = $1', [maker.userId]);
  expect(await titles(ofOpen.token)).toEqual([404]);
  // Who returns begins without earlier feeds.
  await query(app, `insert into memberships (organization_id, user_id, role) values ($1, $2, 'admin')`, [
    maker.organizationId,
    maker.userId,
  ]);
  expect(await titles(ofOpen.token)).toEqual([404]);
});

test('there are at most 20 badges and feeds of a stack, however many are created at once; a service and a token with scopes have no feed', async () => {
  const at = await createStack(app);
  const { token } = await person(app, at.organization, 'admin');
  const make = (kind: string, by = token) => command(app, by, 'embeds.createOfStack', { ...refOf(at), kind });
  const statuses = (await Promise.all(Array.from({ length: 23 }, () => make('badge')))).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([...Array.from({ length: 20 }, () => 200), 409, 409, 409]);
  const { json } = await ok(
    app.call('POST', `/api/orgs/${at.organization}/tokens`, { auth: at.auth, body: { name: 'ci', admin: true } }),
  );
  expect((await make('feed', json.tokenValue)).status).toBe(403);
  const scoped = await ok(
    app.call('POST', '/api/user/tokens', {
      auth: `token ${token}`,
      body: { description: 'scoped', expires: 0, scopes: [{ permissions: ['read', 'write'], stacks: '*/*' }] },
    }),
  );
  expect(JSON.stringify((await make('feed', scoped.json.tokenValue)).error)).toContain('without scopes');
});

import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

interface ListedStack {
  readonly orgName: string;
  readonly projectName: string;
  readonly stackName: string;
}

async function list(auth: string, parameters = ''): Promise<string[]> {
  const { json } = await ok(app.call('GET', `/api/user/stacks?${parameters}`, { auth }));
  return json.stacks.map((one: ListedStack) => `${one.orgName}/${one.projectName}/${one.stackName}`);
}

const create = (auth: string, path: string, stackName: string, tags = {}) =>
  ok(app.call('POST', `/api/stacks/${path}`, { auth, body: { stackName, tags } }));

test('lists the stacks of the caller’s organizations and no others', async () => {
  const auth = `token ${await app.createUser('list-one', 'member', 'lister')}`;
  await app.createUser('list-two', 'viewer', 'lister');
  const foreign = await createStack(app);
  const other = `token ${await app.createUser('list-two', 'admin')}`;
  await create(auth, 'list-one/p', 'a');
  await create(other, 'list-two/p', 'b');
  expect(await list(auth)).toEqual(['list-one/p/a', 'list-two/p/b']);
  expect(await list(auth, `organization=${foreign.organization}`)).toEqual([]);
});

test('filters are combined', async () => {
  const auth = `token ${await app.createUser('filters', 'member')}`;
  await create(auth, 'filters/one', 'a', { team: 'x' });
  await create(auth, 'filters/one', 'b', { team: 'y' });
  await create(auth, 'filters/two', 'c', { team: 'x', zone: 'eu' });
  await create(auth, 'filters/two', 'd', { team: '' });
  expect(await list(auth, 'project=one')).toEqual(['filters/one/a', 'filters/one/b']);
  expect(await list(auth, 'organization=filters&tagName=team')).toHaveLength(4);
  expect(await list(auth, 'tagName=team&tagValue=x')).toEqual(['filters/one/a', 'filters/two/c']);
  expect(await list(auth, 'project=two&tagName=team&tagValue=x')).toEqual(['filters/two/c']);
  expect(await list(auth, 'tagName=none')).toEqual([]);
  expect(await list(auth, 'project=&organization=&tagName=&tagValue=&continuationToken=')).toHaveLength(4);
  // `pulumi stack ls -t =x`
  for (const filter of ['tagName=&tagValue=x', 'tagValue=x'])
    expect(await app.call('GET', `/api/user/stacks?${filter}`, { auth })).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(/tagValue needs tagName/) },
    });
});

test('pages continue without gaps or repeats, and the last has no token', async () => {
  const auth = `token ${await app.createUser('pages', 'member')}`;
  await create(auth, 'pages/p', 'first');
  await query(
    app,
    `insert into stacks (project_id, name)
     select project_id, n.name from stacks s, lateral (select 'S' || i as name from generate_series(1, 20020) i) n
     where s.name = 'first'`,
  );
  const seen: string[] = [];
  let parameters = 'organization=pages';
  for (let page = 1; page <= 3; page++) {
    const { json } = await ok(app.call('GET', `/api/user/stacks?${parameters}`, { auth }));
    seen.push(...json.stacks.map((one: ListedStack) => one.stackName));
    if (page === 3) expect(json).not.toHaveProperty('continuationToken');
    else {
      expect(json.stacks).toHaveLength(10_000);
      // The CLI does not escape tokens.
      expect(json.continuationToken).toMatch(/^[\w-]+$/);
      parameters = `organization=pages&continuationToken=${json.continuationToken}`;
    }
    // Deletions and insertions before the current page do not shift the next one.
    if (page === 1) await query(app, `delete from stacks where name = $1`, [seen[0]]);
  }
  expect(seen).toHaveLength(20_021);
  expect(new Set(seen).size).toBe(20_021);
});

test('a page continues after any stack, with each filter, where names repeat', async () => {
  const auth = `token ${await app.createUser('borders-a', 'member', 'borders')}`;
  await app.createUser('borders-b', 'viewer', 'borders');
  await query(
    app,
    `with made as (
       insert into projects (organization_id, name)
       select o.id, p from organizations o, unnest('{p,q,r}'::text[]) p where o.name like 'borders-%' returning id, name)
     insert into stacks (project_id, name, tags)
     select made.id, n, case when made.name = 'q' then '{"team":"x"}' else '{"team":"y","zone":"eu"}' end
     from made, unnest('{a,b,p}'::text[]) n`,
  );
  for (const filter of ['', 'organization=borders-b', 'project=q', 'tagName=zone', 'tagName=team&tagValue=x']) {
    const all = await list(auth, filter);
    expect(all).toEqual(all.toSorted());
    for (const [at, name] of all.entries()) {
      const token = Buffer.from(name).toString('base64url');
      expect(await list(auth, `${filter}&continuationToken=${token}`)).toEqual(all.slice(at + 1));
    }
  }
  // A position between stacks: the one that it names is gone.
  const token = Buffer.from('borders-a/q/aa').toString('base64url');
  expect((await list(auth, `organization=borders-a&continuationToken=${token}`))[0]).toBe('borders-a/q/b');
});

test('one page covers many organizations, some without stacks, some with many or with large tags', async () => {
  const auth = `token ${await app.createUser('many-000', 'member', 'many')}`;
  await query(
    app,
    `insert into organizations (name) select 'many-' || lpad(n::text, 3, '0') from generate_series(1, 210) n`,
  );
  await query(
    app,
    `insert into memberships (organization_id, user_id, role) select o.id, u.id, 'viewer' from organizations o, users u
     where u.login = 'many' and o.name like 'many-%' on conflict do nothing`,
  );
  await query(
    app,
    `with made as (
       insert into projects (organization_id, name)
       select id, 'p' from organizations where name like 'many-%' and right(name, 1) in ('3', '7', '9') returning id, organization_id)
     insert into stacks (project_id, name, tags)
     select made.id, 's' || lpad(n::text, 5, '0'), case when o.name = 'many-107' then big.tags else '{}' end
     from made join organizations o on o.id = made.organization_id,
       (select json_object_agg('t' || n, repeat('x', 250))::text as tags from generate_series(1, 190) n) big,
       generate_series(1, case o.name when 'many-103' then 1050 when 'many-107' then 60 else 2 end) n`,
  );
  const all = await list(auth);
  expect(all).toHaveLength(61 * 2 + 1050 + 60);
  expect(all).toEqual(all.toSorted());
  expect(new Set(all).size).toBe(all.length);
});

test('a page that is exactly full is the last', async () => {
  const auth = `token ${await app.createUser('full', 'member')}`;
  await create(auth, 'full/p', 'only');
  await query(
    app,
    `insert into stacks (project_id, name) select project_id, 'x' || i from stacks, generate_series(1, 9999) i where name = 'only'`,
  );
  const { json } = await ok(app.call('GET', '/api/user/stacks', { auth }));
  expect(json.stacks).toHaveLength(10_000);
  expect(json).not.toHaveProperty('continuationToken');
});

test('the first page has all stacks of a large organization, for commands that read no other', async () => {
  const auth = `token ${await app.createUser('first-page', 'member')}`;
  await create(auth, 'first-page/p', 'template', { 'pulumi:project': 'p' });
  await query(
    app,
    `with made as (
       insert into projects (organization_id, name)
       select o.id, 'proj' || i from organizations o, generate_series(1, 300) i where o.name = 'first-page' returning id)
     insert into stacks (project_id, name, tags)
     select made.id, 's' || i, s.tags from made, generate_series(1, 10) i, stacks s where s.name = 'template'`,
  );
  const { json } = await ok(app.call('GET', '/api/user/stacks', { auth }));
  expect(json).not.toHaveProperty('continuationToken');
  const names = json.stacks.map((one: ListedStack) => `${one.projectName}/${one.stackName}`);
  expect(new Set(names).size).toBe(3_001);
  expect(names).toHaveLength(3_001);
  expect(new Set(json.stacks.map((one: ListedStack) => one.projectName)).size).toBe(301);
});

test('a foreign continuation token returns 400', async () => {
  const { auth } = await createStack(app);
  for (const token of ['x', 'AAAA', Buffer.from('a/b').toString('base64url')])
    expect((await app.call('GET', `/api/user/stacks?continuationToken=${token}`, { auth })).status).toBe(400);
});

test('tags are replaced as a whole, so that one can be removed', async () => {
  const stack = await createStack(app);
  const patch = (body: object | string) => app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body });
  expect((await patch({ a: '1', b: '2' })).status).toBe(204);
  await ok(patch({ a: '1' }));
  expect((await getStack(app, stack)).tags).toEqual({ a: '1' });
  await ok(patch('{"tags":{"b":"3","tags":"x"}}'));
  expect((await getStack(app, stack)).tags).toEqual({ b: '3', tags: 'x' });
  // A tag of the name "tags" in the CLI's form.
  await ok(patch({ tags: 'plain' }));
  expect((await getStack(app, stack)).tags).toEqual({ tags: 'plain' });
  await ok(patch({}));
  expect((await getStack(app, stack)).tags).toEqual({});
});

test('a tag may be called __proto__ or constructor', async () => {
  const stack = await createStack(app);
  const body = '{"__proto__":"x","constructor":"y"}';
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body }));
  const got = await ok(app.call('GET', stack.path, { auth: stack.auth }));
  expect(got.text).toContain('"tags":{"__proto__":"x","constructor":"y"}');
});

test('invalid tags return 400 and change nothing', async () => {
  const stack = await createStack(app);
  const patch = (body: object) => app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body });
  await ok(patch({ kept: 'yes' }));
  for (const body of [
    { 'a b': 'x' },
    { ['x'.repeat(41)]: 'x' },
    { a: 'x'.repeat(257) },
    { a: 'é'.repeat(129) },
    { a: 1 },
    { a: null },
    { a: 'x\0' },
    { a: '\ud800' },
    { tags: { a: 1 } },
    { '': 'x' },
    [],
  ])
    expect({ body, status: (await patch(body)).status }).toEqual({ body, status: 400 });
  expect((await getStack(app, stack)).tags).toEqual({ kept: 'yes' });
  await ok(patch({ ['x'.repeat(40)]: 'é'.repeat(128) }));
});

test('tags of a stack that does not exist return 404', async () => {
  const { auth, organization } = await createStack(app);
  expect((await app.call('PATCH', `/api/stacks/${organization}/proj/none/tags`, { auth, body: {} })).status).toBe(404);
});

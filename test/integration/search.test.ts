import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Type } from 'typebox';
import type { Caller } from '../../src/api/platform/http/request.ts';
import { defaultBounds } from '../../src/api/search/search-budget.ts';
import { createSearchRepository } from '../../src/api/search/search-repository.ts';
import { SearchService } from '../../src/api/search/search-service.ts';
import { exportStacks } from '../../src/api/stacks/stack-export.ts';
import { StackQueries } from '../../src/api/stacks/stack-queries.ts';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { indexAll, stackId, stateOf, type TestResource } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();
let home: TestStack;
let other: TestStack;
let token: string;

async function addStack(of: TestStack, project: string, stack: string, tags: object = {}): Promise<TestStack> {
  const body = { stackName: stack, tags };
  await ok(app.call('POST', `/api/stacks/${of.organization}/${project}`, { auth: of.auth, body }));
  return { ...of, project, stack, path: `/api/stacks/${of.organization}/${project}/${stack}` };
}

async function write(stack: TestStack, resources: readonly TestResource[]): Promise<void> {
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: stateOf(stack, resources) }));
  await indexAll(app);
}

const provider = (version: string) => ({
  name: 'default',
  type: 'pulumi:providers:test',
  id: 'p1',
  inputs: { version },
});
const made = { provider: 'default' };

beforeAll(async () => {
  home = await createStack(app);
  token = home.auth.replace('token ', '');
  await write(home, [
    provider('5.9.0'),
    { ...made, name: 'orders-db', type: 'aws:rds/instance:Instance', protect: true },
    { ...made, name: 'orders_db', type: 'aws:rds/instance:Instance' },
    { ...made, name: 'mainBucket', type: 'aws:s3/bucket:Bucket' },
    { name: '100%', type: 'aws:s3/bucketV2:BucketV2' },
  ]);
  await write(await addStack(home, 'web', 'prod', { env: 'prod' }), [
    provider('6.10.0'),
    { ...made, name: 'site', type: 'aws:s3/bucket:Bucket' },
    { ...made, name: 'child', type: 'aws:s3/object:Object', parent: 'root' },
  ]);
  await write(await addStack(home, 'web', 'stage', { env: 'stage' }), [
    provider('6.2.0-alpha.1'),
    { ...made, name: 'site', type: 'aws:s3/bucket:Bucket', protect: true },
  ]);
  other = await createStack(app);
  await write(other, [provider('4.0.0'), { ...made, name: 'orders-db', type: 'aws:rds/instance:Instance' }]);
});

async function read(procedure: string, input: object, as = token) {
  const { data, error } = await ask(app, as, procedure, input);
  expect(error).toBeNull();
  return data;
}

async function callerOf(as: string) {
  const caller = await app.context.identity.findCaller(hashToken(as), {
    organization: null,
    project: null,
    stack: null,
  });
  if (!caller) throw new Error('the token is not known');
  return caller;
}

type Item = { project: string; stack: string; name: string };
const nameOf = ({ name, project, stack }: Item) => `${project}/${stack} ${name}`;
const find = async (text: string, as?: string): Promise<string[]> =>
  (await read('search.list', { query: text, limit: 200 }, as)).items.map(nameOf);

test('a list continues after a resource with a long name in any script', async () => {
  const names = ['網', '路'].map((letter) => letter.repeat(190));
  const stack = await addStack(await createStack(app), 'p'.repeat(100), 's'.repeat(100));
  await write(
    stack,
    names.map((name) => ({ name })),
  );
  const search = { query: `stack:${stack.stack}`, limit: 1 };
  const as = stack.auth.replace('token ', '');
  const first = await read('search.list', search, as);
  const second = await read('search.list', { ...search, cursor: first.next }, as);
  expect([...first.items, ...second.items].map(({ name }) => name).sort()).toEqual([...names].sort());
});

test.each([
  ['type:aws:rds/*', ['proj/dev orders-db', 'proj/dev orders_db']],
  ['type:aws:rds/* -protect:true', ['proj/dev orders_db']],
  ['type:aws:s3/bucket:Bucket', ['proj/dev mainBucket', 'web/prod site', 'web/stage site']],
  ['type:*Bucket stack:web/*', ['web/prod site', 'web/stage site']],
  ['name:orders_db', ['proj/dev orders_db']],
  ['name:orders_*', ['proj/dev orders_db']],
  ['name:*%', ['proj/dev 100%']],
  ['name:%', []],
  ['name:1__%', []],
  ['name:\\*', []],
  ['protect:yes', ['proj/dev orders-db', 'web/stage site']],
  ['orders', ['proj/dev orders-db', 'proj/dev orders_db']],
  ['Orders-d', ['proj/dev orders-db', 'proj/dev orders_db']],
  ['rders', []],
  ['buck', ['proj/dev mainBucket', 'web/prod site', 'web/stage site', 'proj/dev 100%']],
  ['main', ['proj/dev mainBucket']],
  ['mainbuck', ['proj/dev mainBucket']],
  ['buck -site -main', ['proj/dev 100%']],
  ['bucket version:<6', ['proj/dev mainBucket']],
  ['bucket version:6', ['web/prod site', 'web/stage site']],
  ['bucket version:>=6.9', ['web/prod site']],
  ['bucket version:6.2.0-alpha.1', ['web/stage site']],
  ['bucket -version:<6 provider:test', ['web/prod site', 'web/stage site']],
  ['bucket -version:*', ['proj/dev 100%']],
  ['provider:te* name:site', ['web/prod site', 'web/stage site']],
  ['provider:aws', []],
  ['tag:env=prod type:aws:*', ['web/prod child', 'web/prod site']],
  ['tag:env=pr* -name:child type:aws:*', ['web/prod site']],
  ['tag:env -tag:env=prod type:aws:*', ['web/stage site']],
  ['project:web -stack:prod site', ['web/stage site']],
  ['stack:*/w*/p* site', ['web/prod site']],
  ['parent:web-prod', ['web/prod child']],
  ['parent:urn:pulumi:prod::web::pulumi:pulumi:Stack::web-prod', ['web/prod child']],
  ['urn:urn:pulumi:prod::web::aws:s3/bucket:Bucket::site', ['web/prod site']],
  ['urn:urn:pulumi:prod::web::*Object::*', ['web/prod child']],
  ['-custom:yes', ['web/prod web-prod']],
  ['custom:false', ['web/prod web-prod']],
  ['changed:<1h site', ['web/prod site', 'web/stage site']],
  ['changed:>1h', []],
  ['deleted:true', []],
])('%s', async (text, expected) => {
  expect((await find(text)).sort()).toEqual([...expected].sort());
});

test('old changes are distinguished from recent ones', async () => {
  const stack = await addStack(await createStack(app), 'old', 'prod');
  await write(stack, [{ name: 'first' }]);
  await write(stack, [{ name: 'first' }, { name: 'second' }]);
  const id = await stackId(app, stack);
  await query(
    app,
    `update updates set ended_at = ended_at - interval '40 days' where stack_id = $1 and stack_version = 1`,
    [id],
  );
  const as = stack.auth.replace('token ', '');
  expect(await find('changed:>30d', as)).toEqual(['old/prod first']);
  expect(await find('changed:<30d', as)).toEqual(['old/prod second']);
  expect(await find('-changed:<30d', as)).toEqual(['old/prod first']);
});

test('pages follow each other without a gap, in the order of stacks', async () => {
  const all = await find('');
  expect(all).toHaveLength(11);
  expect(all.map((each) => each.split(' ')[0])).toEqual([...all.map((each) => each.split(' ')[0])].sort());
  for (const limit of [1, 2, 3, 7]) {
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await read('search.list', { query: '', limit, cursor });
      expect(page).toMatchObject({ isCut: false, isTrimmed: false });
      seen.push(...page.items.map(nameOf));
      cursor = page.next;
    } while (cursor !== null);
    expect(seen).toEqual(all);
  }
});

test('a resource is found with its stack, its provider and its last change', async () => {
  const { items } = await read('search.list', { query: 'type:aws:s3/object:Object' });
  expect(items).toEqual([
    {
      ...{
        organization: home.organization,
        project: 'web',
        stack: 'prod',
        name: 'child',
        type: 'aws:s3/object:Object',
      },
      ...{ urn: 'urn:pulumi:prod::web::aws:s3/object:Object::child', provider: 'test', providerVersion: '6.10.0' },
      parent: 'urn:pulumi:prod::web::pulumi:pulumi:Stack::web-prod',
      providerUrn: 'urn:pulumi:prod::web::pulumi:providers:test::default',
      ...{ protect: false, isCustom: true, isExternal: false, isDeleted: false, changedIn: 1 },
      changedAt: expect.any(String),
    },
  ]);
});

test('resources are counted by a field', async () => {
  const count = async (text: string, by: string) => {
    const { groups, ...counts } = await read('search.count', { query: text, by });
    return { ...counts, groups: groups.map((group: Record<string, unknown>) => Object.values(group)) };
  };
  const all = { otherGroups: 0, isCut: false, isTrimmed: false, behind: null };
  expect(await count('type:aws:s3/*', 'type')).toEqual({
    ...all,
    resources: 5,
    groups: [
      ['aws:s3/bucket:Bucket', null, 3, 3],
      ['aws:s3/bucketV2:BucketV2', null, 1, 1],
      ['aws:s3/object:Object', null, 1, 1],
    ],
  });
  expect((await count('site', 'stack')).groups).toEqual([
    [`${home.organization}/web/prod`, null, 1, 1],
    [`${home.organization}/web/stage`, null, 1, 1],
  ]);
  expect((await count('type:aws:*', 'project')).groups).toEqual([
    [`${home.organization}/proj`, null, 4, 1],
    [`${home.organization}/web`, null, 3, 2],
  ]);
  expect((await count('type:aws:s3/*', 'provider')).groups).toEqual(
    expect.arrayContaining([
      ['test', '6.10.0', 2, 1],
      ['', null, 1, 1],
    ]),
  );
});

test('versions of providers are listed with their stacks', async () => {
  const { groups } = await read('search.providers', { organization: home.organization });
  expect(groups).toEqual([
    { name: 'test', version: '6.10.0', resources: 2, stacks: 1 },
    { name: 'test', version: '6.2.0-alpha.1', resources: 1, stacks: 1 },
    { name: 'test', version: '5.9.0', resources: 3, stacks: 1 },
  ]);
});

describe('rights', () => {
  test('stacks of other organizations are never found', async () => {
    expect(await find('name:orders-db')).toEqual(['proj/dev orders-db']);
    expect(await find('name:orders-db', other.auth.replace('token ', ''))).toEqual(['proj/dev orders-db']);
    const { error } = await ask(app, token, 'search.list', { query: '', organization: other.organization });
    expect(error).toMatchObject({ code: 'NOT_FOUND' });
    expect((await read('search.list', { query: '', organization: home.organization })).items).toHaveLength(11);
  });

  test('a stack that may not be read is not found, counted or named', async () => {
    const limited = await person(app, home.organization, 'member');
    await grant(app, limited.organizationId, { userId: limited.userId }, 'deny', ['read'], { stacks: 'web/prod' });
    expect(await find('site', limited.token)).toEqual(['web/stage site']);
    expect(await find('urn:urn:pulumi:prod::web::aws:s3/bucket:Bucket::site', limited.token)).toEqual([]);
    for (const by of ['type', 'stack', 'project', 'provider']) {
      const counts = await read('search.count', { query: 'site', by }, limited.token);
      expect(counts).toMatchObject({ resources: 1, isTrimmed: true });
      expect(JSON.stringify(counts)).not.toMatch(/prod|6\.10/);
    }
    const { groups } = await read('search.providers', {}, limited.token);
    expect(groups.map(({ version }: { version: string }) => version)).toEqual(['6.2.0-alpha.1', '5.9.0']);
    // Also for queries that find nothing of it: otherwise the answer would tell what it has.
    expect(await read('search.list', { query: 'name:none' }, limited.token)).toMatchObject({
      isTrimmed: true,
      next: null,
    });
  });

  test('a deny of a tag counts', async () => {
    const limited = await person(app, home.organization, 'admin');
    const selection = { tag: ['env', 'stage'] } as const;
    await grant(app, limited.organizationId, { userId: limited.userId }, 'deny', ['read'], selection);
    expect(await find('site', limited.token)).toEqual(['web/prod site']);
  });
});

test('a deleted stack is not found', async () => {
  const stack = await addStack(home, 'gone', 'dev');
  await write(stack, [{ name: 'vanishing' }]);
  expect(await find('vanishing')).toHaveLength(1);
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  expect(await find('vanishing')).toEqual([]);
  expect(await find('type:test:index:Bucket')).toEqual([]);
});

test('a caller does not wait for all searches of another', async () => {
  const { db } = app.context;
  const [gates, ended]: [(() => void)[], string[]] = [[], []];
  let listed = 0;
  let isOpen = false;
  const gated = Object.assign(Object.create(db) as typeof db, {
    any: async (...query: Parameters<typeof db.any>) => {
      const rows = await db.any(...query);
      listed++;
      return rows;
    },
    inTransaction: async (work: Parameters<typeof db.inTransaction>[0]) => {
      if (!isOpen) await new Promise<void>((resolve) => gates.push(resolve));
      return db.inTransaction(work);
    },
  });
  const service = new SearchService({ ...app.context, db: gated });
  const search = async (by: string, as: string) => {
    await service.list(await callerOf(as), { text: '', organization: null, after: null, limit: 1 });
    ended.push(by);
  };
  const searches = Array.from({ length: 8 }, () => search('busy', token));
  await until(() => listed === 8 && gates.length === 3, 'searches run');
  searches.push(search('other', other.auth.replace('token ', '')));
  await until(() => listed === 9, 'the other caller waits');
  gates[0]?.();
  await until(() => ended.length === 1 && gates.length === 4, 'the next one runs');
  gates[3]?.();
  await until(() => ended.length === 2, 'the next one ends');
  expect(ended).toEqual(['busy', 'other']);
  isOpen = true;
  for (const open of gates) open();
  await Promise.all(searches);
});

test('an invalid query is refused with the position of the error', async () => {
  const { error, status } = await ask(app, token, 'search.list', { query: 'a naem:db' });
  expect({ error, status }).toMatchObject({ status: 400, error: { code: 'BAD_REQUEST', kind: 'invalid-query' } });
});

test('a truncated search says so, and continues where it stopped', async () => {
  const caller = await callerOf(token);
  const search = new SearchService(app.context, { ms: 60_000, resources: 1, counted: 1 });
  const seen: string[] = [];
  let pages = 0;
  let after = null;
  do {
    const page = await search.list(caller, { text: 'custom:true', organization: home.organization, after, limit: 50 });
    expect(page.isCut).toBe(page.next !== null);
    seen.push(...page.items.map(nameOf));
    after = page.next;
    pages++;
  } while (after !== null);
  expect(pages).toBeGreaterThan(1);
  expect(seen).toEqual(await find('custom:true'));
  const counts = await search.count(caller, { text: '', organization: null, by: 'type' });
  expect(counts.isCut).toBe(true);
});

test('a count stops after fewer resources than a list, and says so', async () => {
  const caller = await callerOf(token);
  const search = new SearchService(app.context, { ms: 60_000, resources: 5_000_000, counted: 1 });
  const { organization } = home;
  const page = await search.list(caller, { text: 'custom:true', organization, after: null, limit: 1_000 });
  const all = await find('custom:true');
  expect([page.isCut, page.items.length]).toEqual([false, all.length]);
  const counts = await search.count(caller, { text: 'custom:true', organization: null, by: 'type' });
  expect(counts.isCut).toBe(true);
  // What an index finds is counted, though the fleet is large.
  const few = await search.count(caller, { text: 'name:site', organization, by: 'stack' });
  expect(few.groups.length).toBeGreaterThan(0);
  const versions = await search.providers(caller, organization);
  expect(versions.isCut).toBe(false);
});

test('the CLI searches by REST', async () => {
  const at = `/api/orgs/${home.organization}/search/resources`;
  const get = async (path: string) => (await ok(app.call('GET', path, { auth: home.auth }))).json;
  const query = encodeURIComponent('type:aws:s3/* -name:site');
  const first = await get(`${at}v2?query=${query}&size=2`);
  expect(first).toMatchObject({ total: 3, cutShort: false, trimmed: false, resources: [{}, {}] });
  expect(first.resources[0]).toMatchObject({
    package: 'aws',
    module: 's3/bucket',
    project: 'proj',
    stack: 'dev',
    protected: false,
  });
  const second = await get(first.pagination.next);
  expect(second.total).toBe(3);
  expect(second.resources).toEqual([
    expect.objectContaining({ name: 'child', parent_urn: 'urn:pulumi:prod::web::pulumi:pulumi:Stack::web-prod' }),
  ]);
  expect(second.pagination.next).toBeUndefined();
  const { resources } = await get(`${at}?query=${encodeURIComponent('name:100%')}`);
  expect(resources).toEqual([expect.objectContaining({ name: '100%', 'parent.urn': null, 'provider.urn': null })]);
  const refused = await app.call('GET', `${at}?query=naem:x`, { auth: home.auth });
  expect([refused.status, refused.json.message]).toEqual([400, expect.stringMatching(/character 1: .*no field/)]);
  expect((await app.call('GET', at, { auth: other.auth })).status).toBe(404);
  for (const [option, why] of [
    ['sort=modified', /sorted by stack, type and name/],
    ['sort=name&sort=type&asc=true', /sorted by stack, type and name/],
    ['properties=true', /no values of properties/],
  ] as const)
    expect(await app.call('GET', `${at}v2?${option}`, { auth: home.auth })).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(why) },
    });
  await get(`${at}v2?properties=false&collapse=true&asc=true`);
});

test('what is missing in a response is said in the header that the CLI prints', async () => {
  const { organization } = home;
  const get = (search: string) =>
    ok(app.call('GET', `/api/orgs/${organization}/search/resourcesv2?query=custom:true${search}`, { auth: home.auth }));
  const all = await find(`custom:true`);
  const warning = async (search: string) => (await get(search)).headers['x-pulumi-warning'];
  expect(await warning('&size=1')).toBeUndefined();
  const bounds = { ...defaultBounds };
  try {
    Object.assign(defaultBounds, { counted: 1 });
    const cut = await get('&size=2');
    expect(cut.headers['x-pulumi-warning']).toMatch(/^There are at least \d+ resources in total/);
    expect(cut.json.total).toBeGreaterThanOrEqual(cut.json.resources.length);
    const later = await ok(app.call('GET', cut.json.pagination.next, { auth: home.auth }));
    expect([later.headers['x-pulumi-warning'], later.json.total]).toEqual([
      cut.headers['x-pulumi-warning'],
      cut.json.total,
    ]);
    // Nothing is left to count.
    const whole = await get(`&size=${all.length}`);
    expect([whole.headers['x-pulumi-warning'], whole.json.total]).toEqual([undefined, all.length]);
    Object.assign(defaultBounds, { resources: 1 });
    const first = await get('&size=100');
    expect(first.headers['x-pulumi-warning']).toMatch(
      /^The search took too long: .*pagination\.next\. There are at least/,
    );
    expect(first.json.total).toBeGreaterThanOrEqual(first.json.resources.length);
    // `pulumi api --all` would take an empty page for the end, without the warning.
    const path = `/api/orgs/${organization}/search/resourcesv2?query=${encodeURIComponent('-custom:true -custom:false')}`;
    const empty = await ok(app.call('GET', path, { auth: home.auth }));
    expect(empty.json).toMatchObject({ resources: [], pagination: { next: expect.any(String) } });
    const headers = { 'user-agent': 'pulumi-cli/1 (3.276.0; linux; cmd=api)' };
    const byApi = await app.call('GET', path, { auth: home.auth, headers });
    const { cursor } = Object.fromEntries(new URL(empty.json.pagination.next, 'http://x').searchParams);
    expect([byApi.status, byApi.json.message]).toEqual([400, expect.stringMatching(`continue with cursor=${cursor}$`)]);
  } finally {
    Object.assign(defaultBounds, bounds);
  }
});

test('an index that is behind for long is in the header that the CLI prints', async () => {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: stateOf(stack, [{ name: 'new' }]) }));
  const warning = async () => {
    const path = `/api/orgs/${stack.organization}/search/resources`;
    return (await ok(app.call('GET', path, { auth: stack.auth }))).headers['x-pulumi-warning'];
  };
  expect(await warning()).toBeUndefined();
  const id = await stackId(app, stack);
  await query(app, `update state_index_due set noted_at = now() - interval '2 minutes' where stack_id = $1`, [id]);
  expect(await warning()).toMatch(/^The index is 1\d\d s behind: it lacks the newest state of 1 stack\(s\)$/);
  await indexAll(app);
  expect(await warning()).toBeUndefined();
});

test('who may not read all stacks does not learn from the lag of the index when the others change', async () => {
  const stack = await createStack(app);
  const secret = await addStack(stack, 'secret', 'plan');
  const { organization } = stack;
  const reader = await person(app, organization, 'viewer');
  await grant(app, reader.organizationId, { userId: reader.userId }, 'deny', ['read'], { stacks: 'secret/*' });
  const save = (of: TestStack) =>
    ok(app.call('POST', `${of.path}/import`, { auth: of.auth, body: stateOf(of, [{ name: 'new' }]) }));
  const lags = async (auth: string) => {
    const token = auth.replace('token ', '');
    const place = { organization, project: stack.project, stack: stack.stack };
    return [
      (await ok(app.call('GET', `/api/orgs/${organization}/search/resources`, { auth }))).json.behind?.stacks,
      (await ask(app, token, 'references.graph', { organization })).data?.behind?.stacks,
      (await ask(app, token, 'references.ofStack', place)).data?.behind?.stacks,
    ];
  };
  await save(secret);
  expect(await lags(reader.auth)).toEqual([undefined, undefined, undefined]);
  expect(await lags(stack.auth)).toEqual([1, 1, 1]);
  await save(stack);
  expect(await lags(reader.auth)).toEqual([1, 1, 1]);
  expect(await lags(stack.auth)).toEqual([2, 2, 2]);
  // A whole index that is built again hides no readable stack.
  const added = await query<{ id: string }>(
    app,
    `insert into stacks (project_id, name) select project_id, 'many' || n from stacks, generate_series(1, 1000) n where id = $1 returning id`,
    [await stackId(app, secret)],
  );
  await query(
    app,
    `insert into state_index_due (stack_id, noted_at) select unnest($1::uuid[]), now() - interval '1 hour'`,
    [added.map(({ id }) => id)],
  );
  expect(await lags(reader.auth)).toEqual([1_000, 1_000, 1_000]);
  await query(app, `delete from state_index_due where stack_id = any ($1)`, [added.map(({ id }) => id)]);
  await indexAll(app);
});

test('a resource older than the index says so, in a form that the CLI can print', async () => {
  const stack = await addStack(await createStack(app), 'old', 'dev');
  const kept = { name: 'kept', type: 'aws:s3/bucket:Bucket' };
  const body = stateOf(stack, [kept]);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body }));
  await write(stack, [kept, { ...kept, name: 'added' }]);
  const at = `/api/orgs/${stack.organization}/search/resources`;
  const get = async (path: string) => (await ok(app.call('GET', path, { auth: stack.auth }))).json.resources;
  const modified = (resources: readonly { name: string; modified?: string }[]) =>
    Object.fromEntries(resources.map((resource) => [resource.name, resource.modified]));
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
  // `pulumi org search` crashes without it.
  expect(modified(await get(`${at}?query=type:aws:s3/*`))).toEqual({ added: time, kept: '' });
  expect(modified(await get(`${at}v2?query=type:aws:s3/*`))).toEqual({ added: time, kept: undefined });
});

describe('references', () => {
  const reference = (to: string) => ({ name: to, type: 'pulumi:pulumi:StackReference', inputs: { name: to } });
  const names = (nodes: readonly { project: string; stack: string; isReadable: boolean }[]) =>
    nodes.map(({ isReadable, project, stack }) => `${project}/${stack}${isReadable ? '' : ' (hidden)'}`);

  test('show which stack reads which, without stacks that may not be read', async () => {
    const net = await addStack(await createStack(app), 'net', 'prod');
    const { organization } = net;
    const place = (project: string, stack: string) => `${organization}/${project}/${stack}`;
    await write(await addStack(net, 'shop', 'prod'), [
      reference(place('net', 'prod')),
      reference(place('gone', 'prod')),
    ]);
    const stock = await addStack(net, 'stock', 'prod');
    await write(stock, [reference(place('shop', 'prod')), reference(place('net', 'prod'))]);
    const as = net.auth.replace('token ', '');
    const graph = await read('references.graph', { organization }, as);
    expect(graph).toMatchObject({ isCut: false });
    expect(names(graph.nodes).sort()).toEqual(['gone/prod (hidden)', 'net/prod', 'shop/prod', 'stock/prod']);
    expect(graph.edges).toEqual([
      { from: place('shop', 'prod'), to: place('gone', 'prod') },
      { from: place('shop', 'prod'), to: place('net', 'prod') },
      { from: place('stock', 'prod'), to: place('net', 'prod') },
      { from: place('stock', 'prod'), to: place('shop', 'prod') },
    ]);
    const ofShop = await read('references.ofStack', { organization, project: 'shop', stack: 'prod' }, as);
    expect([names(ofShop.reads), names(ofShop.readBy)]).toEqual([['gone/prod (hidden)', 'net/prod'], ['stock/prod']]);
    const limited = await person(app, organization, 'member');
    await grant(app, limited.organizationId, { userId: limited.userId }, 'deny', ['read'], { stacks: 'stock/*' });
    expect(JSON.stringify(await read('references.graph', { organization }, limited.token))).not.toContain('stock');
    const ofNet = await read('references.ofStack', { organization, project: 'net', stack: 'prod' }, limited.token);
    expect(names(ofNet.readBy)).toEqual(['shop/prod']);
    const other = await person(app, organization, 'member');
    await grant(app, other.organizationId, { userId: other.userId }, 'deny', ['read'], { stacks: 'net/*' });
    const { nodes } = await read('references.graph', { organization }, other.token);
    expect(names(nodes).sort()).toEqual(['gone/prod (hidden)', 'net/prod (hidden)', 'shop/prod', 'stock/prod']);
    const referring = async () => {
      const marked = await query<{ name: string }>(
        app,
        `select l.project_name as name from state_indexes i join stack_changes l using (stack_id)
         where i.referring_in = l.organization_id and l.organization_id = (select id from organizations where name = $1) order by 1`,
        [organization],
      );
      return marked.map(({ name }) => name);
    };
    expect(await referring()).toEqual(['shop', 'stock']);
    await write(stock, [reference(place('net', 'prod'))]);
    expect(await referring()).toEqual(['shop', 'stock']);
    await write(stock, []);
    expect(await referring()).toEqual(['shop']);
  });
});

describe('a secret', () => {
  const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' };
  let stack: TestStack;
  const urn = 'urn:pulumi:dev::proj::test:index:Bucket::box';
  const reveal = (location: object, as = stack.auth.replace('token ', '')) => {
    const { organization, project, stack: name } = stack;
    return command(app, as, 'secrets.reveal', { organization, project, stack: name, location });
  };
  const events = () =>
    query<{ details: string; outcome: string; login: string }>(
      app,
      `select details::text as details, outcome, login from audit_events where organization = $1 and action = 'secret.show' order by number`,
      [stack.organization],
    );

  beforeAll(async () => {
    stack = await createStack(app);
    const encrypt = async (plaintext: string): Promise<string> => {
      const body = { plaintext: Buffer.from(plaintext).toString('base64') };
      return (await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body }))).json.ciphertext;
    };
    const encrypted = async (value: unknown) => ({ ...signature, ciphertext: await encrypt(JSON.stringify(value)) });
    const config = {
      'proj:password': { string: await encrypt('open sesame'), secret: true },
      'proj:nested': { string: `{"a":1,"key":{"secure":"${await encrypt('x "y"')}"}}`, secret: true, object: true },
      'proj:plain': { string: 'seen', secret: false },
    };
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { config } }));
    const path = `${stack.path}/update/${json.updateID}`;
    const { json: started } = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
    const lease = `update-token ${started.token}`;
    const box = {
      name: 'box',
      inputs: {
        list: [1, { pass: await encrypted('hidden text') }],
        other: { ...signature, ciphertext: 'v1:abc:def' },
      },
    };
    const state = stateOf(stack, [{ ...box, parent: 'root' }]);
    Object.assign(state.deployment.resources[0] as object, {
      outputs: {
        url: await encrypted('https://a.example'),
        mixed: { a: 1, b: await encrypted({ deep: [true] }) },
        open: 'x',
      },
    });
    await ok(app.call('PATCH', `${path}/checkpoint`, { auth: lease, body: state }));
    await ok(complete(app, { id: json.updateID, path, lease, version: started.version }));
  });

  test('is shown to a user who may decrypt, and each read is recorded with its location', async () => {
    const shown = async (location: object) => (await reveal(location)).data?.value;
    expect(await shown({ of: 'output', name: 'url' })).toBe('https://a.example');
    expect(JSON.parse(await shown({ of: 'output', name: 'mixed' }))).toEqual({ a: 1, b: { deep: [true] } });
    expect(await shown({ of: 'resource', urn, part: 'inputs', path: ['list', 1, 'pass'] })).toBe('hidden text');
    expect(await shown({ of: 'config', key: 'proj:password' })).toBe('open sesame');
    expect(JSON.parse(await shown({ of: 'config', key: 'proj:nested' }))).toEqual({ a: 1, key: 'x "y"' });
    const recorded = await events();
    expect(recorded.map(({ details }) => JSON.parse(details).path)).toEqual([
      'outputs.url',
      'outputs.mixed',
      `${urn} inputs.list[1].pass`,
      'config.proj:password',
      'config.proj:nested',
    ]);
    expect(JSON.stringify(recorded)).not.toMatch(/sesame|hidden text|a\.example/);
  });

  test('of a resource is shown only beside what was shown around it', async () => {
    const { organization, project, stack: name } = stack;
    const shown = await ask(app, stack.auth.replace('token ', ''), 'resources.get', {
      ...{ organization, project, stack: name, urn },
    });
    const { inputs, outputs } = shown.data.digests;
    expect([inputs, outputs]).toEqual([expect.stringMatching(/^[\w-]{43}$/), null]);
    const place = { of: 'resource', urn, part: 'inputs', path: ['list', 1, 'pass'] };
    expect((await reveal({ ...place, digest: inputs })).data?.value).toBe('hidden text');
    expect(await reveal({ ...place, digest: 'x'.repeat(43) })).toMatchObject({ status: 409 });
  });

  test('of another provider, or what is none, is not shown', async () => {
    const ofOther = await reveal({ of: 'resource', urn, part: 'inputs', path: ['other'] });
    expect(ofOther).toMatchObject({ status: 400, error: { kind: 'not-decryptable', message: /only the cli/i } });
    for (const place of [
      { of: 'output', name: 'open' },
      { of: 'output', name: 'none' },
      { of: 'config', key: 'proj:plain' },
      { of: 'config', key: 'constructor' },
      { of: 'resource', urn, part: 'outputs', path: ['pass'] },
      { of: 'resource', urn: `${urn}x`, part: 'inputs', path: ['list'] },
    ])
      expect({ place, ...(await reveal(place)) }).toMatchObject({ place, status: 404 });
  });

  test('is not shown to a user who may not decrypt, which is recorded as a refusal', async () => {
    const denied = await person(app, stack.organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', ['decrypt']);
    expect(await reveal({ of: 'output', name: 'url' }, denied.token)).toMatchObject({ status: 403 });
    expect((await events()).at(-1)).toMatchObject({ outcome: 'refused', login: denied.login });
  });
});

test('a condition that takes long to look up in the index does not end the search', async () => {
  const stack = await createStack(app);
  await write(stack, [{ name: 'slowly' }]);
  const id = await stackId(app, stack);
  await query(
    app,
    `insert into stack_resources select (json_populate_record(r, json_build_object('key', 'k' || n, 'place', 'p' || n))).*
     from stack_resources r, generate_series(1, 20000) n where r.stack_id = $1 and r.name = 'slowly'`,
    [id],
  );
  const condition = { kind: 'words', words: ['slowly'] } as const;
  const limit = 100_000;
  await app.context.db.inTransaction(async (tx) => {
    const rows = createSearchRepository(tx);
    await rows.begin(60_000);
    expect(await rows.probe(condition, { limit, ms: 1 })).toBe('slow');
    const [row] = await tx.any(sql.rows(Type.Object({ timeout: Type.String() }))`
      select current_setting('statement_timeout') as timeout`);
    expect(row?.timeout).toBe('1min');
    expect(await rows.probe(condition, { limit: 10, ms: 60_000 })).toBe('many');
    expect(await rows.probe(condition, { limit, ms: 60_000 })).toEqual([id]);
  });
  await query(app, `delete from stack_resources where key like 'k%' and stack_id = $1`, [id]);
});

describe('the list of stacks', () => {
  test('is narrowed by who holds the lock and by age', async () => {
    const stack = await createStack(app);
    const busy = await addStack(stack, 'web', 'busy');
    const old = await addStack(stack, 'web', 'old');
    await startUpdate(app, busy);
    await query(app, `update stack_changes set changed_at = changed_at - interval '40 days' where stack_id = $1`, [
      await stackId(app, old),
    ]);
    const as = stack.auth.replace('token ', '');
    const { login } = (await read('me.get', {}, as)) as { login: string };
    const list = async (text: string) =>
      (await read('stacks.list', { text }, as)).items.map(({ stack: name }: { stack: string }) => name).sort();
    expect(await list(`owner:${login.toUpperCase()}`)).toEqual(['busy']);
    expect(await list(`owner:${login.slice(0, 3)}*`)).toEqual(['busy']);
    expect(await list('owner:%')).toEqual([]);
    expect(await list('updated:>30d')).toEqual(['old']);
    expect(await list('updated:<30d web/')).toEqual(['busy']);
    const { error } = await ask(app, as, 'stacks.list', { text: 'updated:soon' });
    expect(error).toMatchObject({ kind: 'invalid-query' });
  });

  test('is a file for spreadsheets, with all pages of what the filter shows', async () => {
    const stack = await createStack(app);
    const body = { stackName: 'formula', tags: { note: '=1+2 "x",y' } };
    await ok(app.call('POST', `/api/stacks/${stack.organization}/web`, { auth: stack.auth, body }));
    for (let at = 0; at < 5; at++) await addStack(stack, 'many', `s${at}`, { '-cmd': 'x' });
    const get = (search: string) =>
      app.call('GET', `/trpc/download/stacks.csv?${search}`, { auth: stack.auth, accept: null });
    const all = await get(`organization=${stack.organization}`);
    expect([all.status, all.headers['content-type']]).toEqual([200, expect.stringContaining('text/csv')]);
    const lines = all.text.trimEnd().split('\r\n');
    expect(lines[0]).toMatch(/^organization,project,stack,version,resources/);
    expect(lines).toHaveLength(8);
    expect(lines.find((line) => line.includes('formula'))).toContain('"note==1+2 ""x"",y"');
    expect(lines.filter((line) => line.endsWith(",'-cmd=x"))).toHaveLength(5);
    const filtered = await get('tag=note&text=form');
    expect(filtered.text.trimEnd().split('\r\n')).toHaveLength(2);
    expect((await get('status=odd')).status).toBe(400);
    expect((await app.call('GET', '/trpc/download/stacks.csv', { auth: 'token none', accept: null })).status).toBe(401);
  });

  test.each([
    ['token is revoked', 'update api_tokens set revoked_at = now() where id = $1'],
    [
      'user is deactivated',
      'update users set deactivated_at = now() where id = (select user_id from api_tokens where id = $1)',
    ],
  ])('as a file ends when the %s', async (_, end) => {
    const stack = await createStack(app);
    const { auth, tokenId } = await person(app, stack.organization, 'admin');
    await query(
      app,
      `insert into stacks (project_id, name) select project_id, 'other' || n from stacks, generate_series(1, 300) n where id = $1`,
      [await stackId(app, stack)],
    );
    const { listRows } = StackQueries.prototype;
    const reading = jest.spyOn(StackQueries.prototype, 'listRows').mockImplementation(async function (
      this: StackQueries,
      ...asked
    ) {
      const page = await listRows.apply(this, asked);
      if (reading.mock.calls.length === 1) await query(app, end, [tokenId]);
      return page;
    });
    const path = `/trpc/download/stacks.csv?organization=${stack.organization}`;
    const outcome = await app.call('GET', path, { auth, accept: null }).then(
      ({ status }) => status,
      () => 'broken off',
    );
    const reads = reading.mock.calls.length;
    reading.mockRestore();
    expect([outcome === 200, reads]).toEqual([false, 1]);
  });

  test('as a file has stacks that change while it is written, each once, and all their tags', async () => {
    const stack = await createStack(app);
    await query(
      app,
      `insert into stacks (project_id, name) select project_id, 'other' || n from stacks, generate_series(1, 500) n where id = $1`,
      [await stackId(app, stack)],
    );
    const [row] = await query<{ id: string }>(app, 'select id from api_tokens where token_hash = $1', [
      hashToken(stack.auth.replace('token ', '')),
    ]);
    const filter = { organization: stack.organization, text: null, project: null, tag: null, status: null };
    const names: string[] = [];
    // The list begins with the newest change.
    const touch = (names: readonly string[]) =>
      query(app, `update stack_changes set changed_at = clock_timestamp() where stack_name = any ($1)`, [names]);
    const pages = exportStacks(new StackQueries(app.context), { tokenId: row?.id } as Caller, filter);
    for await (const page of pages) {
      if (names.length === 0) {
        const [last] = await query<{ name: string }>(
          app,
          `select stack_name as name from stack_changes c join stacks s on s.id = c.stack_id
           where s.project_id = (select project_id from stacks where id = $1) order by c.changed_at, c.stack_id limit 1`,
          [await stackId(app, stack)],
        );
        await touch([last?.name as string, page[0]?.stack as string]);
      }
      names.push(...page.map(({ stack: name }) => name));
    }
    expect(names).toHaveLength(501);
    expect(new Set(names).size).toBe(501);
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`t${at}`, 'x']));
    await ok(
      app.call('POST', `/api/stacks/${stack.organization}/web`, {
        auth: stack.auth,
        body: { stackName: 'tagged', tags },
      }),
    );
    const file = await app.call('GET', `/trpc/download/stacks.csv?organization=${stack.organization}&project=web`, {
      auth: stack.auth,
      accept: null,
    });
    for (const name of Object.keys(tags)) expect(file.text).toContain(`${name}=x`);
  });
});

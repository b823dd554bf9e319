import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { SearchService } from '../../src/api/search/search-service.ts';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { stackId, stateOf, type TestResource } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';

jest.setTimeout(180_000);

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
  await app.context.indexer.index(await stackId(app, stack));
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

type Item = { project: string; stack: string; name: string };
const nameOf = ({ name, project, stack }: Item) => `${project}/${stack} ${name}`;
const find = async (text: string, as?: string): Promise<string[]> =>
  (await read('search.list', { query: text, limit: 200 }, as)).items.map(nameOf);

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

test('what has changed long ago is told from what has changed lately', async () => {
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
  const all = { otherGroups: 0, isCut: false, isTrimmed: false };
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

test('a query that cannot be read is refused with its place', async () => {
  const { error, status } = await ask(app, token, 'search.list', { query: 'a naem:db' });
  expect({ error, status }).toMatchObject({ status: 400, error: { code: 'BAD_REQUEST', kind: 'invalid-query' } });
});

test('a search that is cut short says so, and goes on where it stopped', async () => {
  const caller = await app.context.identity.findCaller(hashToken(token), {
    organization: null,
    project: null,
    stack: null,
  });
  if (!caller) throw new Error('the token is not known');
  const search = new SearchService(app.context, { ms: 60_000, resources: 1 });
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

import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { sumProjectDays } from '../../src/workers/statistics/sum-project-days.ts';
import { browserOf, PageBrowser } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { deleteStack } from '../support/deleted-stacks.ts';
import { grant, type Person, person } from '../support/grants.ts';
import { pages } from '../support/page-routes.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { ask, command, type ProcedureResult } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { ok, type TestStack } from '../support/state.ts';
import { indexAll, stateOf } from '../support/state-index.ts';
import { testApp, testReplica } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

// A stack whose name, tags, resources and commits all have the same word in them, which nothing says any more once it is deleted.

const word = 'vanished';
/** One that must not serve from memory what the other has deleted. */
const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });
const replica = testReplica(app);
const organization = 'acme';
let owner: Person;
let gone: TestStack;
let updateId: string;
let scim: string;
let browser: PageBrowser;

/** What has the word before. */
const told = [
  ...['GET /api/orgs/:organization/grants', 'GET /api/orgs/:organization/search/resources'],
  ...['GET /api/orgs/:organization/search/resourcesv2', 'GET /api/orgs/:organization/stack-hooks'],
  ...['GET /api/user/stacks', 'GET /trpc/download/stacks.csv', 'approvals.list', 'grants.list', 'operator.slow'],
  ...['references.graph', 'search.count', 'search.list', 'search.providers', 'stacks.attention', 'stacks.list'],
  ...['stacks.renamed', 'stacks.tags'],
];

/** What still has the word, and why. */
const recorded = 'It is recorded for good';
const restorable = 'It can be restored';
const named = 'It names all stacks with this name, also later ones';
const stillTold: Readonly<Record<string, string>> = {
  'GET /api/orgs/:organization/auditlogs': recorded,
  'GET /api/orgs/:organization/auditlogs/export': recorded,
  'GET /api/orgs/:organization/auditlogs/v2': recorded,
  'GET /api/orgs/:organization/auditlogs/v2/export': recorded,
  'audit.list': recorded,
  'GET /api/orgs/:organization/deleted-stacks': restorable,
  'deletedStacks.list': restorable,
  'GET /api/orgs/:organization/grants': named,
  'grants.list': named,
  'references.graph': 'The state of another stack says that it reads it',
};

/** What says something only about stacks by the input, if it is this. */
const inputs: Readonly<Record<string, object>> = {
  'search.count': { query: '', by: 'stack' },
  'search.list': { query: word },
  'stacks.renamed': { project: 'proj', stack: 'before' },
};

type Procedures = Record<string, { _def: { meta: ProcedureMeta; type: string } }>;
const procedures = Object.entries(appRouter._def.procedures as unknown as Procedures);
const isOfStack = ({ _def }: Procedures[string]): boolean => _def.meta.access?.kind === 'stack';

function call(name: string, type: string, stack: string): Promise<ProcedureResult> {
  const place = { organization, project: 'proj', stack };
  const given = inputs[name] ?? procedureTable[name]?.input ?? {};
  const input = { ...place, ...(typeof given === 'function' ? given(place) : given) };
  return (type === 'query' ? ask : command)(replica, owner.token, name, {
    ...input,
    ...('updateId' in input ? { updateId } : {}),
  });
}

beforeAll(async () => {
  owner = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [owner.userId]);
  const { auth } = owner;
  scim = await provisioningToken(app, organization);
  browser = await browserOf(app, owner.login);
  const create = async (name: string): Promise<TestStack> => {
    await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: name } }));
    return { auth, organization, project: 'proj', stack: name, path: `/api/stacks/${organization}/proj/${name}` };
  };
  const dev = await create('dev');
  await ok(app.call('POST', `${(await create('before')).path}/rename`, { auth, body: { newName: word } }));
  gone = { ...dev, stack: word, path: `/api/stacks/${organization}/proj/${word}` };
  const tag = { name: `${word}-tag`, value: 'x' };
  await ok(app.call('POST', `${gone.path}/tags`, { auth, body: tag }));
  const type = `${word}:index:Thing`;
  const things = [
    { name: 'p', type: `pulumi:providers:${word}` },
    { name: `${word}-thing`, type },
  ];
  await ok(app.call('POST', `${gone.path}/import`, { auth, body: stateOf(gone, things) }));
  // Each of them reads the other.
  for (const [stack, read] of [
    [dev, gone],
    [gone, dev],
  ] as const) {
    const inputs = { name: `${organization}/proj/${read.stack}` };
    const reference = { name: `${word}-network`, type: 'pulumi:pulumi:StackReference', inputs };
    const environment = {
      'git.head': 'c'.repeat(40),
      'git.headName': word,
      'ci.build.url': `https://ci.example.com/${word}`,
    };
    const body = { metadata: { message: word, environment } };
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth, body: stack === gone ? body : {} }));
    const path = `${stack.path}/update/${json.updateID}`;
    const { json: started } = await ok(app.call('POST', path, { auth, body: {} }));
    const lease = `update-token ${started.token}`;
    const resources = stack === gone ? [reference, ...things] : [{ ...reference, name: 'network' }];
    await ok(app.call('PATCH', `${path}/checkpoint`, { auth: lease, body: stateOf(stack, resources) }));
    await ok(
      complete(
        app,
        { id: json.updateID, path, lease, version: started.version },
        stack === gone ? 'failed' : 'succeeded',
      ),
    );
    updateId = json.updateID;
  }
  await createHook(app, gone, 'stack', { payloadUrl: `https://hooks.example.com/${word}` });
  await ok(app.call('POST', `${gone.path}/approvals`, { auth, body: { commit: 'd'.repeat(40), reason: word } }));
  await grant(app, owner.organizationId, { userId: owner.userId }, 'allow', ['read'], { stacks: `proj/${word}` });
  await sumProjectDays(app.context, new AbortController().signal);
  await indexAll(app);
});

/** The names of the queries, and routes that read, whose responses have the word, but for those of one stack. */
async function tellers(): Promise<string[]> {
  const found: string[] = [];
  for (const [name, procedure] of procedures) {
    const { type } = procedure._def;
    if (type !== 'query' || isOfStack(procedure)) continue;
    const { data, error } = await call(name, type, 'dev');
    if (JSON.stringify(data ?? error).includes(word)) found.push(name);
  }
  for (const route of listRoutes(replica.app)) {
    const pattern = route.replace(/^GET /, '');
    if (pattern === route || /\/:stack(\/|$)/.test(pattern) || pattern === '/trpc/:procedures') continue;
    const ids: Readonly<Record<string, string>> = {
      organization,
      project: 'proj',
      name: organization,
      login: owner.login,
    };
    const url = pattern.replace(/:(\w+)/g, (_, key: string) => ids[key] ?? randomUUID());
    const page = pages[route] === 'session' ? browser : new PageBrowser(replica);
    const { text } = await (pages[route] === undefined
      ? replica.call('GET', url, { auth: url.startsWith('/scim/') ? scim : owner.auth })
      : page.get(url));
    if (text.includes(word)) found.push(route);
  }
  return found.sort();
}

test('no list, search or graph of an organization says anything of a deleted stack', async () => {
  expect(await tellers()).toEqual(expect.arrayContaining(told));
  await ok(deleteStack(app, gone));
  expect(await tellers()).toEqual(Object.keys(stillTold).sort());
});

test.each(['before', 'after'])('no procedure finds a deleted stack, %s its rows are deleted', async (when) => {
  if (when === 'after') {
    await query(app, 'update stacks set restorable_until = now() where restorable_until is not null');
    expect(await createStackDeletion(app.context, { pauseMs: 0, runMs: 600_000 })()).toBe(1);
  }
  const wrong: object[] = [];
  const ofStack = procedures.filter(([, procedure]) => isOfStack(procedure) && procedure._def.type !== 'subscription');
  for (const [name, { _def }] of ofStack) {
    const there = await call(name, _def.type, 'dev');
    const { data, error, status } = await call(name, _def.type, word);
    const isMissing = status === 404 && error?.message.includes(`${organization}/proj/${word}`);
    if (!isMissing || data !== undefined) wrong.push({ name, status, error, there: there.status });
  }
  expect(wrong).toEqual([]);
  expect(ofStack.length).toBeGreaterThan(40);
  // It names two.
  const other = { organization, project: 'proj', stack: word, version: 1 };
  const compared = { organization, project: 'proj', stack: 'dev', version: 1, other };
  expect(await ask(replica, owner.token, 'versions.diffStacks', compared)).toMatchObject({ status: 404 });
});

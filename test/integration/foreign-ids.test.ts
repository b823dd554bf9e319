import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { appRouter } from '../../src/api/router.ts';
import { query } from '../support/database.ts';
import { deleteStack } from '../support/deleted-stacks.ts';
import { grant, person, team } from '../support/grants.ts';
import { command } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type NotedStatements, noteStatements } from '../support/statement-count.ts';
import { testApp } from '../support/test-app.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook, deliverDue } from '../support/webhooks.ts';

const settings = { HOLDFAST_DELETED_STACK_DAYS: '7', userRequestsPerMinute: 0 };
const app = testApp({ settings });

interface Organization {
  readonly stack: TestStack;
  readonly hook: string;
  readonly stackHook: string;
}

const tables = [
  ...[
    'api_tokens',
    'embeds',
    'grants',
    'import_runs',
    'roles',
    'saved_views',
    'stacks',
    'trusted_issuers',
    'update_approvals',
    'update_queue_waiters',
    'update_rules',
    'updates',
  ],
  ...['webhook_deliveries', 'webhooks'],
];
/** Live and deleted, or of a stack and of its organization. */
const ofTwoKinds = ['embeds', 'stacks', 'webhook_deliveries', 'webhooks'];
/** Ids of rows, by table, that belong to the organization of the first stack. The caller administers the other one. */
const foreign: Record<string, string[]> = {};
let own: Organization;
let statements: NotedStatements;

/** An organization with one of everything that has an id. */
async function createOrganization(): Promise<Organization> {
  const stack = await createStack(app);
  const { auth, organization } = stack;
  const post = (path: string, body: object) => ok(app.call('POST', path, { auth, body }));
  const make = async (procedure: string, input: object) =>
    expect(await command(app, auth.replace('token ', ''), procedure, { organization, ...input })).toMatchObject({
      error: null,
    });
  const hook = await createHook(app, stack, 'organization', { name: 'hook', payloadUrl: 'https://203.0.113.1/x' });
  const stackHook = await createHook(app, stack, 'stack', { name: 'hook', payloadUrl: 'https://203.0.113.1/y' });
  await post(`${hook}/ping`, {});
  await post(`${stackHook}/ping`, {});
  const { organizationId, userId } = await person(app, organization, 'member');
  await team(app, organizationId, 'blue', []);
  await grant(app, organizationId, { userId }, 'allow', ['write'], { stacks: 'proj/*' });
  await post(`/api/orgs/${organization}/tokens`, { name: 'ci' });
  await post(`/api/orgs/${organization}/teams/blue/tokens`, { name: 'blue' });
  await make('roles.create', { name: 'deployer', description: '', permissions: ['read'] });
  await setRule(app, stack, { kind: 'lock-wait', settings: { seconds: 1 } });
  await make('approvals.ask', { project: stack.project, stack: stack.stack, commit: 'a'.repeat(40) });
  await make('embeds.create', {});
  await make('views.create', { name: 'mine', isShared: true, viewed: { page: 'ci', search: {} } });
  await make('embeds.createOfStack', { project: stack.project, stack: stack.stack, kind: 'badge' });
  await make('issuers.create', { name: 'ci', url: `https://ci.example.com/${organization}`, keys: null });
  await startUpdate(app, stack);
  await query(
    app,
    `with run as (
       insert into import_runs (organization_id, kind, source, run_by) values ($1, 'import', 'file:///old', 'ann') returning id),
     noted as (
       insert into import_run_stacks (run_id, name, project, stack, versions, previews, quarantine, notes)
       select id, 'proj/dev', 'proj', 'dev', 1, 0, false, '[]' from run)
     insert into update_queue_waiters (stack_id, token_id, kept_until)
     select s.id, (select id from api_tokens where user_id = $2), now() + interval '1 day' from stacks s
     join projects p on p.id = s.project_id where p.organization_id = $1 and s.name = 'dev'`,
    [organizationId, userId],
  );
  await post(`/api/stacks/${organization}/proj`, { stackName: 'gone' });
  await ok(deleteStack(app, { ...stack, path: stack.path.replace(/dev$/, 'gone') }));
  return { stack, hook, stackHook };
}

/** Every row with an id, as text, but for what calls of anybody write. */
async function readRows(): Promise<Record<string, Record<string, string>>> {
  const tables = await query<{ name: string }>(
    app,
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname !~ '^(audit_|maintenance|processes)'`,
  );
  const rows: Record<string, Record<string, string>> = {};
  for (const { name } of tables) {
    const found = await query<{ id: string; text: string }>(
      app,
      `select id, (to_jsonb(t) - array['last_used_at', 'claimed_until', 'next_at'])::text as text from ${name} t`,
    );
    rows[name] = Object.fromEntries(found.map(({ id, text }) => [id, text]));
  }
  return rows;
}
let before: Awaited<ReturnType<typeof readRows>>;

beforeAll(async () => {
  await createOrganization();
  await deliverDue(app);
  before = await readRows();
  for (const table of tables)
    foreign[table] = Object.keys(before[table] ?? {}).slice(0, ofTwoKinds.includes(table) ? 2 : 1);
  const ofEachKind = await query<{ id: string }>(app, 'select min(id::text) as id from api_tokens group by kind');
  foreign['api_tokens'] = ofEachKind.map(({ id }) => id);
  expect(ofEachKind).toHaveLength(3);
  expect(tables.filter((table) => foreign[table]?.length === 0)).toEqual([]);
  own = await createOrganization();
  statements = noteStatements(app);
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly statements: readonly string[];
}

/** The response to the caller about an id, and its cost, without the id itself. */
async function answerTo(
  id: string,
  method: string,
  path: string,
  body: object | undefined,
  accept: null | undefined,
): Promise<Answer> {
  statements.begun.length = 0;
  const response = await app.call(method, path, {
    auth: own.stack.auth,
    ...(accept === null ? { accept } : {}),
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, text: response.text.replaceAll(id, '<id>'), statements: [...statements.begun] };
}

/** Calls that differ between an id of the other organization and one that nothing has. */
async function differencesOf(call: (id: string) => Promise<Answer>): Promise<object[]> {
  const differences: object[] = [];
  const isSame = (one: Answer, other: Answer) => JSON.stringify(one) === JSON.stringify(other);
  let nothing = await call(randomUUID());
  for (const [table, ids] of Object.entries(foreign))
    for (const id of ids) {
      let answer = await call(id);
      // Work in the background may add a statement to one of them.
      for (let again = 0; again < 5 && !isSame(answer, nothing); again++)
        [nothing, answer] = [await call(randomUUID()), await call(id)];
      if (!isSame(answer, nothing)) differences.push({ table, answer, nothing });
    }
  return differences;
}

/** Procedures whose input has an id, by what else it has. */
const byId: Record<string, (id: string) => object> = {
  'updates.list': (beforeId) => ({ beforeId }),
  'updates.get': (updateId) => ({ updateId }),
  'updates.statistics': (updateId) => ({ updateId }),
  'updates.events': (updateId) => ({ updateId }),
  'updates.cancel': (updateId) => ({ updateId }),
  'updates.drain': (updateId) => ({ updateId }),
  'queue.evict': (placeId) => ({ placeId }),
  'rules.get': (ruleId) => ({ ruleId }),
  'rules.estimate': (ruleId) => ({ ruleId, kind: 'keep-events', settings: { days: 1 } }),
  'rules.change': (ruleId) => ({ ruleId, kind: 'lock-wait', settings: { seconds: 2 } }),
  'rules.remove': (ruleId) => ({ ruleId }),
  'approvals.give': (approvalId) => ({ approvalId, reason: 'seen' }),
  'approvals.withdraw': (approvalId) => ({ approvalId }),
  'imports.get': (id) => ({ id }),
  'imports.stacks': (id) => ({ id }),
  'deletedStacks.restore': (id) => ({ id }),
  'deletedStacks.purge': (id) => ({ id }),
  'webhooks.delivery': (deliveryId) => ({ webhook: 'hook', deliveryId }),
  'webhooks.redeliver': (deliveryId) => ({ webhook: 'hook', deliveryId }),
  'webhooks.ofStack.delivery': (deliveryId) => ({ webhook: 'hook', deliveryId }),
  'webhooks.ofStack.redeliver': (deliveryId) => ({ webhook: 'hook', deliveryId }),
  'views.change': (id) => ({ id, name: 'other' }),
  'views.pin': (id) => ({ id, isPinned: true }),
  'views.remove': (id) => ({ id }),
  'embeds.revoke': (id) => ({ id }),
  'embeds.revokeOfStack': (id) => ({ id }),
  'roles.countGrants': (id) => ({ id }),
  'roles.edit': (id) => ({ id, name: 'other', description: '', permissions: ['read'] }),
  'roles.delete': (id) => ({ id, force: true }),
  'grants.take': (id) => ({ id }),
  'tokens.revokeMine': (id) => ({ id }),
  'tokens.rotateMine': (id) => ({ id, overlapSeconds: 0 }),
  'tokens.revoke': (id) => ({ id }),
  'tokens.rotate': (id) => ({ id, overlapSeconds: 0 }),
  'tokens.revokeOfTeam': (id) => ({ id, team: 'blue' }),
  'tokens.rotateOfTeam': (id) => ({ id, team: 'blue', overlapSeconds: 0 }),
  'issuers.get': (id) => ({ id }),
  'issuers.edit': (id) => ({ id, name: 'other' }),
  'issuers.setPolicies': (id) => ({ id, version: 1, policies: [] }),
  'issuers.delete': (id) => ({ id }),
};

/** Their ids are those of jobs, which operators see, and of resources in the state of the stack. */
const withoutRows = ['operator.discardJob', 'operator.retryJob', 'stacks.repair'];

test('each procedure with an id is called', () => {
  const procedures = appRouter._def.procedures as unknown as Record<
    string,
    { readonly _def: { readonly inputs: readonly { readonly schema: object }[] } }
  >;
  const withIds = Object.entries(procedures).filter(([, { _def }]) =>
    /"(id|[a-z]+Id)":/.test(JSON.stringify(_def.inputs.map(({ schema }) => schema))),
  );
  expect([...Object.keys(byId), ...withoutRows].sort()).toEqual(withIds.map(([name]) => name).sort());
});

test.each(Object.keys(byId))(
  '%s tells nothing about ids of another organization, and changes nothing there',
  async (name) => {
    const procedures = appRouter._def.procedures as unknown as Record<string, { _def: { type: string } }>;
    const isChange = procedures[name]?._def.type === 'mutation';
    const { organization, project, stack } = own.stack;
    const differences = await differencesOf((id) => {
      const input = { organization, project, stack, ...byId[name]?.(id) };
      return isChange
        ? answerTo(id, 'POST', `/trpc/${name}`, input, null)
        : answerTo(id, 'GET', `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}`, undefined, null);
    });
    expect(differences).toEqual([]);
  },
);

const routeId = /(?<=:organization.*):([a-zA-Z]+Id|grant|role)\b/;

/** Bodies that are valid, so that the id is looked up. */
const bodies: Readonly<Record<string, object>> = {
  'PUT update-rules/:ruleId': { kind: 'lock-wait', settings: { seconds: 2 } },
  'POST approvals/:approvalId': { reason: 'seen' },
};

function bodyOf(route: string): object {
  const found = Object.entries(bodies).find(([name]) => {
    const [method, end] = name.split(' ') as [string, string];
    return route.startsWith(`${method} `) && route.endsWith(`/${end}`);
  });
  return found?.[1] ?? {};
}

test('routes with ids tell nothing about those of another organization', async () => {
  const routes = listRoutes(app.app).filter((route) => routeId.test(route) && !route.startsWith('HEAD'));
  expect(routes.length).toBeGreaterThan(15);
  const { organization, project, stack } = own.stack;
  for (const route of routes) {
    const [method, pattern] = route.split(' ') as [string, string];
    const differences = await differencesOf((id) => {
      const path = pattern
        .replace(/:kind\(.*?\)\//, 'update/')
        .replace(/:organization/, organization)
        .replace(':project', project)
        .replace(':stackVersion', '1')
        .replace(/:stack\b/, stack)
        .replace(/:hook\b/, 'hook')
        .replace(/:team\b/, 'blue')
        .replace(routeId, id);
      const body = ['GET', 'DELETE'].includes(method) ? undefined : bodyOf(route);
      return answerTo(id, method, path, body, undefined);
    });
    expect({ route, differences: differences.slice(0, 3) }).toEqual({ route, differences: [] });
  }
});

test('nothing of the other organization has changed', async () => {
  const now = await readRows();
  for (const [table, rows] of Object.entries(before))
    for (const [id, text] of Object.entries(rows)) expect({ table, text: now[table]?.[id] }).toEqual({ table, text });
});

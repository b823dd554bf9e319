import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { checkForRollback } from '../../src/shared/updates/rollback-detection/rollback-monitor.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { type NotedStatements, noteStatements } from '../support/statement-count.ts';
import { testApp } from '../support/test-app.ts';

/** Names of one length, so that response lengths do not differ. */
const newName = () => `n${randomBytes(6).toString('hex')}`;

interface Target {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  readonly updateId: string;
}

const app = testApp({ settings: { invalidTokensPerMinute: 100_000 } });
let statements: NotedStatements;
let existing: Target;
let absent: Record<string, Target>;
const held: Record<string, string> = {};
beforeAll(async () => {
  const there = await createStack(newName());
  const update = await startUpdate(app, there);
  existing = targetOf(there, update);
  absent = {
    organization: { ...existing, organization: newName() },
    project: { ...existing, project: newName() },
    stack: { ...existing, stack: newName() },
    update: { ...existing, updateId: randomUUID() },
    all: { organization: newName(), project: newName(), stack: newName(), updateId: randomUUID() },
  };
  const own = await createStack(newName());
  held['a token from elsewhere'] = own.auth;
  held['a live lease from elsewhere'] = (await startUpdate(app, own)).lease;
  const other = await createStack(newName());
  const dead = await startUpdate(app, other);
  await ok(app.call('POST', `${dead.path}/cancel`, { auth: other.auth }));
  held['a dead lease'] = dead.lease;
  // Notes which database it is: the first look at it does more than later ones.
  await checkForRollback(app.context);
  // Records the last use.
  await ok(app.call('GET', '/api/user', { auth: own.auth }));
  statements = noteStatements(app);
});

async function createStack(organization: string): Promise<TestStack> {
  const auth = `token ${await app.createUser(organization, 'admin')}`;
  const [project, stack] = [newName(), newName()];
  await ok(app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName: stack } }));
  return { auth, organization, project, stack, path: `/api/stacks/${organization}/${project}/${stack}` };
}

function targetOf({ organization, project, stack }: TestStack, { id }: RunningUpdate): Target {
  return { organization, project, stack, updateId: id };
}

/** Each call gets its own value where caching would otherwise make a difference. */
const strangers: Record<string, () => string | undefined> = {
  nobody: () => undefined,
  'a wrong token': () => `token ${mintToken('hf-').token}`,
  'a wrong token of an operator': () => `token ${newName()}-${newName()}`,
  'a mistyped token': () => `token hf-${'x'.repeat(49)}`,
  'a wrong lease': () => `update-token ${mintToken('lease-').token}`,
  'a mistyped lease': () => `update-token lease-${'x'.repeat(49)}`,
  'a token from elsewhere': () => held['a token from elsewhere'],
  'the same, as a lease': () => held['a token from elsewhere']?.replace('token', 'update-token'),
  'a live lease from elsewhere': () => held['a live lease from elsewhere'],
  'a dead lease': () => held['a dead lease'],
  'a dead lease, as a token': () => held['a dead lease']?.replace('update-token', 'token'),
};
/** A repeated rejection costs less, and several routes try leases at the same paths. */
const isRemembered = (stranger: string) => /lease from|dead lease/.test(stranger);

async function ask(route: string, target: Target, auth: string | undefined) {
  const [method, pattern] = route.split(' ') as [string, string];
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    .replace(':organization', target.organization)
    .replace(':project', target.project)
    .replace(':stackVersion', '1')
    .replace(':stack', target.stack)
    .replace(':updateId', target.updateId);
  const hasBody = !['GET', 'HEAD', 'DELETE'].includes(method);
  statements.begun.length = 0;
  const response = await app.call(method, url, {
    ...(auth === undefined ? {} : { auth }),
    ...(hasBody ? { body: bodySampleOf(pattern) } : {}),
  });
  const { 'x-pulumi-request-id': _id, date: _date, ...headers } = response.headers;
  let body = response.text;
  for (const [name, value] of Object.entries(target)) body = body.replaceAll(value, `<${name}>`);
  // The last use of a token is recorded again after some time, which a busy machine needs.
  const noted = statements.begun.filter((name) => name !== 'identity.touchToken');
  return { status: response.status, headers, body, statements: noted };
}

test.each(Object.keys(strangers))(
  'existing and missing objects look the same on every route to %s',
  async (stranger) => {
    const routes = listRoutes(app.app).filter((route) => route.includes(':organization'));
    expect(routes.length).toBeGreaterThan(40);
    const differences: object[] = [];
    for (const route of routes) {
      const auth = strangers[stranger] as () => string | undefined;
      const there = await ask(route, existing, auth());
      if (there.status < 400) differences.push({ route, status: there.status });
      for (const [missing, target] of Object.entries(absent)) {
        const not = await ask(route, target, auth());
        if (isRemembered(stranger)) for (const answer of [there, not]) answer.statements.length = 0;
        if (JSON.stringify(not) !== JSON.stringify(there)) differences.push({ route, missing, there, not });
      }
    }
    expect(differences).toEqual([]);
  },
);

describe('objects that a stranger asks for by name', () => {
  test('lists are just as empty for existing objects', async () => {
    const auth = held['a token from elsewhere'] as string;
    const list = (search: string) => app.call('GET', `/api/user/stacks?${search}`, { auth });
    for (const search of ['organization', 'project'] as const) {
      const there = await ok(list(`${search}=${existing[search]}`));
      expect(there.json).toEqual({ stacks: [] });
      expect((await list(`${search}=${newName()}`)).text).toBe(there.text);
    }
  });

  test('a stack cannot be created in an existing organization, nor in a missing one', async () => {
    const auth = held['a token from elsewhere'] as string;
    const create = (organization: string, body: object) =>
      app.call('POST', `/api/stacks/${organization}/proj`, { auth, body });
    for (const body of [{ stackName: 'dev' }, { stackName: 'a/b' }, {}, { stackName: 'dev', tags: { '': 'x' } }]) {
      const organization = newName();
      const there = await create(existing.organization, body);
      const not = await create(organization, body);
      expect(there.status).toBeGreaterThanOrEqual(400);
      expect({ status: not.status, text: not.text.replaceAll(organization, existing.organization) }).toEqual({
        status: there.status,
        text: there.text,
      });
    }
  });
});

import { beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { assertDeclared, type ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import {
  allowedBy,
  deniedBy,
  grantable,
  hasPermission,
  noPermissions,
  type PermissionSet,
  permits,
} from '../../src/shared/access/permissions.ts';
import { rolePermissions } from '../../src/shared/access/roles.ts';
import { StateReader } from '../../src/shared/state/state-reader.ts';
import { browserOf } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { grant, person, team } from '../support/grants.ts';
import { type Need, procedureTable } from '../support/procedure-table.ts';
import { type ProcedureResult, queryPath, resultOf } from '../support/procedures.ts';
import { provisioningToken } from '../support/scim.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

const procedures = Object.entries(
  appRouter._def.procedures as unknown as Record<string, { _def: { type: string; meta: ProcedureMeta } }>,
);
const readsStates = (name: string) =>
  procedures.some(([each, { _def }]) => each === name && _def.meta.cost === 'states');
const isChange = (name: string) => procedures.some(([each, { _def }]) => each === name && _def.type === 'mutation');

/** Somebody, what they may do with the stack, and how they call. */
interface Subject {
  readonly held: PermissionSet;
  /** Whether they belong to the organization; `no one`: they are not let in at all. */
  readonly belongs: boolean | 'no one';
  readonly call: (procedure: string, input: object) => Promise<ProcedureResult>;
}
const subjects: Record<string, Subject> = {};
const stateReads = [jest.spyOn(StateReader.prototype, 'readHead'), jest.spyOn(StateReader.prototype, 'readVersion')];
beforeEach(() => {
  for (const read of stateReads) read.mockClear();
});
let stack: TestStack;

function byToken(auth: string): Subject['call'] {
  return async (procedure, input) =>
    resultOf(
      await (isChange(procedure)
        ? app.call('POST', `/trpc/${procedure}`, { auth, accept: null, body: input })
        : app.call('GET', queryPath(procedure, input), { auth, accept: null })),
    );
}

async function bySession(login: string): Promise<Subject['call']> {
  const browser = await browserOf(app, login);
  return async (procedure, input) =>
    resultOf(
      await (isChange(procedure)
        ? browser.postJson(`/trpc/${procedure}`, input)
        : browser.get(queryPath(procedure, input), { 'sec-fetch-site': 'same-origin' })),
    );
}

beforeAll(async () => {
  stack = await createStack(app);
  const { organization } = stack;
  await startUpdate(app, stack);
  const hook = { name: 'hook', displayName: 'hook', payloadUrl: 'https://hooks.example.com/x' };
  await ok(app.call('POST', `/api/orgs/${organization}/hooks`, { auth: stack.auth, body: hook }));
  const { organizationId } = await person(app, organization, 'viewer');
  await team(app, organizationId, 'blue', []);
  const add = (name: string, subject: Subject) => {
    subjects[name] = subject;
  };
  for (const role of ['viewer', 'member', 'admin'] as const) {
    const { auth, login } = await person(app, organization, role);
    add(`token of a ${role}`, { held: rolePermissions[role], belongs: true, call: byToken(auth) });
    add(`session of a ${role}`, { held: rolePermissions[role], belongs: true, call: await bySession(login) });
  }
  const outsider = await person(app, `${organization}-x`, 'admin');
  add('token of an outsider', { held: noPermissions, belongs: false, call: byToken(outsider.auth) });
  add('session of an outsider', { held: noPermissions, belongs: false, call: await bySession(outsider.login) });
  for (const name of ['read', 'write'] as const) {
    const denied = await person(app, organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', [name]);
    const held = rolePermissions.admin & ~deniedBy([name]);
    add(`session of an admin without ${name}`, { held, belongs: true, call: await bySession(denied.login) });
  }
  const granted = await person(app, organization, 'viewer');
  await grant(app, granted.organizationId, { userId: granted.userId }, 'allow', ['write'], { stacks: 'proj/*' });
  const held = rolePermissions.viewer | allowedBy(['write']);
  add('session of a viewer with a grant', { held, belongs: true, call: await bySession(granted.login) });
  for (const name of grantable) {
    const body = { scopes: [{ permissions: [name], stacks: '*/*' }] };
    const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: stack.auth, body }));
    add(`token for ${name}`, { held: allowedBy([name]), belongs: true, call: byToken(`token ${json.tokenValue}`) });
  }
  const operator = await person(app, `${organization}-x`, 'viewer');
  await query(app, 'update users set site_admin = true where id = $1', [operator.userId]);
  add('token of an operator', { held: noPermissions, belongs: false, call: byToken(operator.auth) });
  add('session of an operator', { held: noPermissions, belongs: false, call: await bySession(operator.login) });
  const provider = await provisioningToken(app, organization);
  add('identity provider', { held: noPermissions, belongs: true, call: byToken(provider) });
  const deactivated = await person(app, organization, 'admin');
  add('token of somebody deactivated', { held: noPermissions, belongs: 'no one', call: byToken(deactivated.auth) });
  const ended = await bySession(deactivated.login);
  add('session of somebody deactivated', { held: noPermissions, belongs: 'no one', call: ended });
  await query(app, 'update users set deactivated_at = now() where id = $1', [deactivated.userId]);
  add('nobody', { held: noPermissions, belongs: 'no one', call: byToken('token nonsense') });
});

/** The status with which a subject is refused; null: let in. */
function refusal({ belongs, held }: Subject, subject: string, needs: Need): number | null {
  if (belongs === 'no one') return 401;
  if (needs === 'user') return subject === 'identity provider' ? 403 : null;
  if (needs === 'owner') return subject === 'identity provider' || subject.startsWith('token for') ? 403 : null;
  if (needs === 'operator') return subject.endsWith('an operator') ? null : 403;
  if (!belongs) return 404;
  if (needs === 'organization') return subject === 'identity provider' ? 403 : null;
  if (needs === 'people') return subject === 'identity provider' || subject.startsWith('token for') ? 403 : null;
  // Nobody here is both.
  if (needs === 'adder') return 403;
  if (needs === 'manager') return / an? admin/.test(subject) ? null : 403;
  if (permits(held, needs)) return null;
  return hasPermission(held, 'read') ? 403 : 404;
}

test('every procedure is in the table', () => {
  const names = procedures.filter(([, { _def }]) => _def.type !== 'subscription').map(([name]) => name);
  expect(names.sort()).toEqual(Object.keys(procedureTable).sort());
});

test.each(Object.keys(procedureTable))('%s lets in who may call it, and no others', async (name) => {
  const { input = {}, needs } = procedureTable[name] as (typeof procedureTable)[string];
  const { organization, project, stack: named } = stack;
  const isAnywhere = needs === 'user' || needs === 'owner' || needs === 'operator';
  const places = isAnywhere ? [{}] : [{ organization, project, stack: named }];
  const wrong: object[] = [];
  for (const [subject, who] of Object.entries(subjects)) {
    for (const place of places) {
      const { data, error, status } = await who.call(name, {
        ...place,
        ...(typeof input === 'function' ? input(place) : input),
      });
      const expected = refusal(who, subject, needs);
      // Let in, but there is no such thing, or there is one already.
      const isIn =
        error === null ||
        status === 409 ||
        (status === 404 &&
          /update|resource|version|webhook|delivery|rule|approval|group|job|nobody-here|invitation|member of "nowhere"|^There is no/i.test(
            error.message,
          ));
      if (isIn !== (expected === null) || (expected !== null && status !== expected))
        wrong.push({ subject, status, error, expected });
      if (!isIn && data !== undefined) wrong.push({ subject, data });
    }
  }
  expect(wrong).toEqual([]);
  // What reads whole states declares it, and waits for its turn.
  if (!readsStates(name)) for (const read of stateReads) expect(read).not.toHaveBeenCalled();
});

test('a stack that the caller may not see looks like one that does not exist', async () => {
  const { organization, project } = stack;
  for (const subject of ['session of an admin without read', 'session of an outsider', 'token for outputs']) {
    const ask = (name: string, of = organization) =>
      (subjects[subject] as Subject).call('stacks.get', { organization: of, project, stack: name });
    const there = await ask('dev');
    const named = (text: string) => there.error?.message.replaceAll('/dev', text);
    expect(await ask('zzz')).toEqual({ ...there, error: { ...there.error, message: named('/zzz') } });
  }
});

test('lists contain what the caller may read', async () => {
  const count = async (subject: string) =>
    (await (subjects[subject] as Subject).call('stacks.list', {})).data.items.filter(
      (item: { organization: string }) => item.organization === stack.organization,
    ).length;
  expect(await count('session of a viewer')).toBe(1);
  expect(await count('token for read')).toBe(1);
  for (const subject of ['session of an admin without read', 'session of an outsider', 'token for outputs'])
    expect(await count(subject)).toBe(0);
});

test('a procedure that declares nothing keeps the app from starting', () => {
  const of = (procedure: object) => ({ _def: { procedures: { 'some.name': { _def: procedure } } } });
  const access = { kind: 'user' };
  expect(() => assertDeclared(of({ type: 'query' }))).toThrow('some.name does not declare who may call it');
  expect(() => assertDeclared(of({ type: 'query', meta: {} }))).toThrow('some.name does not declare who may call it');
  expect(() => assertDeclared(of({ type: 'mutation', meta: { access } }))).toThrow('does not declare its action');
  expect(() => assertDeclared(of({ type: 'query', meta: { access } }))).not.toThrow();
});

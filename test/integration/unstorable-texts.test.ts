import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { exampleOf } from '../../src/api/platform/protocol/examples.ts';
import { appRouter } from '../../src/api/router.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../src/shared/platform/db/sqlstate.ts';
import { AppError, InvalidRequestError } from '../../src/shared/platform/errors/errors.ts';
import { ruleKinds } from '../../src/shared/updates/rules/rule-kinds.ts';
import { query } from '../support/database.ts';
import { type Person, person, team } from '../support/grants.ts';
import { resolveSchemas } from '../support/openapi.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { queryPath } from '../support/procedures.ts';
import { bodySampleOf } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { makeKey } from '../support/test-issuer.ts';
import { textVariants } from '../support/text-variants.ts';

const app = testApp();
/** Postgres stores neither in `jsonb`, and not the first in `text`. */
const oddTexts = ['\0', '\ud800'];
let stack: TestStack;
let caller: Person;
let provider: string;
let ids: Readonly<Record<string, string>>;

/** All settings of all kinds of rules: the schemas of inputs do not have them. */
const ruleVariants = (odd: string) =>
  Object.entries(ruleKinds).flatMap(([kind, { settings }]) =>
    [...textVariants(settings, exampleOf(settings as object as Record<string, unknown>), odd)].map((each) => ({
      kind,
      settings: each,
    })),
  );

beforeAll(async () => {
  stack = await createStack(app);
  const { auth, organization, path } = stack;
  caller = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [caller.userId]);
  await team(app, caller.organizationId, 'blue', []);
  provider = await provisioningToken(app, organization);
  const orgs = `/api/orgs/${organization}`;
  const rule = { kind: 'protected-types', settings: { types: ['a:b:C'] } };
  const set = async (at: string, body: object) => (await ok(app.call('POST', `${orgs}/${at}`, { auth, body }))).json;
  await set('hooks', { name: 'hook', displayName: 'hook', payloadUrl: 'https://hooks.example.com/x' });
  const role = { name: 'deployer', details: { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] } };
  const issuer = { name: 'ci', url: 'https://ci.example.com', jwks: { keys: [(await makeKey('ES256', 'one')).jwk] } };
  const approval = (await ok(app.call('POST', `${path}/approvals`, { auth, body: { commit: 'c'.repeat(40) } }))).json;
  ids = {
    rule: (await set('update-rules', rule)).id,
    role: (await set('roles', role)).id,
    issuer: (await set('oidc/issuers', issuer)).id,
    approval: approval.id,
  };
});

/** Sends the inputs; returns the ones that end in a fault. */
async function faultsOf(
  inputs: readonly unknown[],
  send: (input: unknown) => Promise<{ readonly status: number }>,
  name: string,
): Promise<string[]> {
  const faults: string[] = [];
  for (const input of inputs) {
    const { status } = await send(input);
    if (status >= 500) faults.push(`${name}: ${status} to ${JSON.stringify(input).slice(0, 300)}`);
  }
  return faults;
}

const procedures = Object.entries(
  appRouter._def.procedures as unknown as Record<
    string,
    { readonly _def: { readonly type: string; readonly inputs: readonly { readonly schema: object }[] } }
  >,
).filter(([, { _def }]) => _def.type !== 'subscription');

/** Inputs of a procedure, in each of which one text is odd. */
function variantsOf(name: string, inputs: readonly { readonly schema: object }[]): object[] {
  const { input: given = {} } = procedureTable[name] ?? {};
  const place = { organization: stack.organization, project: stack.project, stack: stack.stack };
  const noun = { rules: 'rule', approvals: 'approval', roles: 'role', issuers: 'issuer' }[name.split('.', 1)[0] ?? ''];
  const id = noun === undefined ? undefined : ids[noun];
  const sample = {
    ...place,
    ...(typeof given === 'function' ? given({ ...place, version: 1 }) : given),
    ...(id === undefined ? {} : { id, ruleId: id, approvalId: id }),
  };
  const accepted = { properties: {}, type: 'object' };
  for (const { schema } of inputs) Object.assign(accepted.properties, (schema as typeof accepted).properties);
  return oddTexts.flatMap((odd) => [
    ...(textVariants(accepted, sample, odd) as Iterable<object>),
    ...('settings' in accepted.properties ? ruleVariants(odd).map((each) => ({ ...sample, ...each })) : []),
  ]);
}

test('no text in an input of a procedure ends in a fault', async () => {
  const faults: string[] = [];
  let count = 0;
  const { auth } = caller;
  for (const [name, { _def }] of procedures) {
    const variants = variantsOf(name, _def.inputs);
    const send = (input: unknown) =>
      _def.type === 'mutation'
        ? app.call('POST', `/trpc/${name}`, { auth, accept: null, body: input as object })
        : app.call('GET', queryPath(name, input), { auth, accept: null });
    count += variants.length;
    faults.push(...(await faultsOf(variants, send, name)));
  }
  expect(faults).toEqual([]);
  expect(count).toBeGreaterThan(500);
});

interface Operation {
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: { readonly $ref?: string } }>>;
  };
}

test('no text in the body of a route ends in a fault', async () => {
  const { json } = await ok(app.call('GET', '/api/openapi.json', { accept: null }));
  const schemas = json.components.schemas as Record<string, { examples: unknown[] }>;
  const faults: string[] = [];
  let count = 0;
  for (const [path, methods] of Object.entries(json.paths as Record<string, Record<string, Operation>>))
    for (const [method, { requestBody }] of Object.entries(methods)) {
      const schema = Object.entries(requestBody?.content ?? {}).find(([type]) => type.endsWith('json'))?.[1].schema;
      if (schema === undefined) continue;
      const named = schemas[schema.$ref?.split('/').at(-1) ?? '']?.examples[0];
      const sample = named ?? bodySampleOf(path.replaceAll(/\{(\w+)\}/g, ':$1'));
      const resolved = resolveSchemas(schema, schemas) as object;
      const isRule = path.includes('/update-rules');
      const variants = oddTexts.flatMap((odd) => [
        ...textVariants(resolved, sample, odd),
        ...(isRule ? ruleVariants(odd) : []),
      ]);
      const places: Readonly<Record<string, string>> = {
        organization: stack.organization,
        project: stack.project,
        stack: stack.stack,
        name: stack.organization,
        login: caller.login,
        team: 'blue',
        hook: 'hook',
        group: 'default-policy-group',
        ruleId: ids['rule'] as string,
        approvalId: ids['approval'] as string,
        role: ids['role'] as string,
        issuerId: ids['issuer'] as string,
        stackVersion: '1',
        kind: 'update',
      };
      const url = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => places[name] ?? randomUUID());
      const auth = path.startsWith('/scim/') ? provider : caller.auth;
      const send = (input: unknown) =>
        app.call(method.toUpperCase(), url, {
          auth,
          headers: path.startsWith('/scim/') ? { 'content-type': 'application/scim+json' } : {},
          body: JSON.stringify(input),
        });
      count += variants.length;
      faults.push(...(await faultsOf(variants, send, `${method} ${path}`)));
    }
  expect(faults).toEqual([]);
  expect(count).toBeGreaterThan(300);
});

test('what Postgres refuses is a mistake of the caller in a parameter, and a fault in what is stored', async () => {
  const { db } = app.context;
  const errorOf = (statement: Promise<unknown>) => statement.then(() => null, mapDatabaseError);
  for (const text of ['{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":"\\udc00b"}']) {
    expect(await errorOf(db.query(sql.nothing`select ${text}::jsonb`))).toBeInstanceOf(InvalidRequestError);
    const stored = await errorOf(
      db.query(sql.nothing`select value::jsonb ->> 'a' from (select ${text}::text as value) s`),
    );
    expect(stored).not.toBeInstanceOf(AppError);
  }
  for (const statement of [sql.nothing`select ${'{'}::jsonb`, sql.nothing`select ${'x'}::uuid`])
    expect(await errorOf(db.query(statement))).not.toBeInstanceOf(AppError);
});

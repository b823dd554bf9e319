import { beforeAll, describe, expect, test } from '@jest/globals';
import Schema from 'typebox/schema';
import {
  base,
  type DialectName,
  type DialectRow,
  dialectNames,
  dialects,
  dialectTable,
  document,
  type Scene,
  withoutDialects,
} from '../support/dialect-table.ts';
import { grant, person } from '../support/grants.ts';
import { resolvedDocument } from '../support/openapi.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

interface Media {
  readonly content?: { readonly 'application/json': { readonly schema: Schema.XSchema } };
}
interface Operation {
  readonly security?: readonly Record<string, unknown>[];
  readonly requestBody?: Media;
  readonly responses: Record<string, Media>;
}

const app = testApp();
let operations: Record<string, Record<string, Operation>>;
beforeAll(async () => {
  operations = (await resolvedDocument(app)).paths;
});

const rows = Object.entries(dialectTable);
const cases = rows.flatMap(([route, row]) => dialectNames.map((dialect) => ({ route, dialect, row })));

/** Creates what the route needs, using calls of the CLI dialect. */
async function setScene(needs: DialectRow['needs']): Promise<Scene> {
  const stack = await createStack(app);
  const { auth, path } = stack;
  const scene: Scene = { stack, updateId: '', lease: '', ciphertext: '' };
  const running = async (journal: boolean): Promise<Scene> => {
    const { id, lease } = await startUpdate(app, stack, { journal });
    return { ...scene, updateId: id, lease };
  };
  switch (needs) {
    case undefined:
      return scene;
    case 'tagged':
      await ok(app.call('POST', `${path}/tags`, { auth, body: { name: 'tier', value: '1' } }));
      return scene;
    case 'secret': {
      const { json } = await ok(app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: 'YQ==' } }));
      return { ...scene, ciphertext: json.ciphertext };
    }
    case 'running':
      return running(false);
    case 'journal':
      return running(true);
    case 'saved': {
      const saved = await running(false);
      const body = `{"version":3,"untypedDeployment":${base},"sequenceNumber":1}`;
      await ok(app.call('PATCH', `${path}/update/${saved.updateId}/checkpointverbatim`, { auth: saved.lease, body }));
      return saved;
    }
    case 'uploaded': {
      const calls = new PolicyCalls(app, stack);
      await ok(calls.upload(await ok(calls.begin())));
      return scene;
    }
    case 'published':
      await new PolicyCalls(app, stack).publish();
      return scene;
    case 'grouped':
      await ok(new PolicyCalls(app, stack).call('POST', 'policygroups', { name: 'group' }));
      return scene;
    case 'imported':
    case 'created':
    case 'ended':
      await ok(app.call('POST', `${path}/import`, { auth, body: document }));
  }
  if (needs === 'imported') return scene;
  if (needs === 'created') {
    const { json } = await ok(app.call('POST', `${path}/update`, { auth, body: {} }));
    return { ...scene, updateId: json.updateID };
  }
  const preview = await startUpdate(app, stack, { kind: 'preview' });
  await ok(complete(app, preview));
  return { ...scene, updateId: preview.id, lease: preview.lease };
}

function operationOf(route: string): Operation {
  const [method = '', pattern = ''] = route.split(' ');
  const path = pattern.replace(/\(\^[^/]*\)(?=\/|$)/, '').replace(/:(\w+)/g, '{$1}');
  const operation = operations[path]?.[method.toLowerCase()];
  if (!operation) throw new Error(`The API's description has no ${route}`);
  return operation;
}

function call(
  route: string,
  scene: Scene,
  { accept, body }: { accept: string | null; body?: object | string | undefined },
): Promise<TestResponse> {
  const [method = '', pattern = ''] = route.split(' ');
  const { stack, updateId, lease } = scene;
  const url = pattern
    .replace(/:kind\([^/]*\)(?=\/)/, 'update')
    .replace(':organization', stack.organization)
    .replace(':project', stack.project)
    .replace(':pack', 'pack')
    .replace(':versionTag', '1.0.0')
    .replace(':group', 'group')
    .replace(':tag', 'tier')
    .replace(':stackVersion', '1')
    .replace(':stack', stack.stack)
    .replace(':updateId', updateId);
  const byLease = operationOf(route).security?.some((scheme) => 'leaseToken' in scheme) === true;
  return app.call(method, `${url}${dialectTable[route]?.query ?? ''}`, {
    auth: byLease ? lease : stack.auth,
    accept,
    ...(body === undefined ? {} : { body }),
  });
}

const schemaOf = (media: Media | undefined) => media?.content?.['application/json'].schema;
const other = (dialect: DialectName): DialectName => (dialect === 'cli' ? 'contract' : 'cli');

test('the table matches the routes under /api/', () => {
  const routes = listRoutes(app.app)
    .filter((route) => route.includes(' /api/'))
    // Each GET also answers HEAD.
    .filter((route) => !route.startsWith('HEAD ') || route in dialectTable);
  expect([...Object.keys(dialectTable), ...withoutDialects].sort()).toEqual(routes.sort());
});

test.each(cases)(
  '$route accepts the body and sends the response of the $dialect dialect',
  async ({ route, dialect, row }) => {
    const scene = await setScene(row.needs);
    const { requestBody, responses } = operationOf(route);
    const body = row.body?.own[dialect](scene);
    const taken = schemaOf(requestBody);
    expect(taken === undefined).toBe(body === undefined);
    if (taken) expect(Schema.Compile(taken).Errors(body)).toEqual([true, []]);

    const response = await call(route, scene, { accept: dialects[dialect], body });
    expect({ status: response.status, text: response.status < 400 ? '' : response.text }).toEqual({
      status: row.status,
      text: '',
    });
    if (row.contentType !== undefined) {
      expect(response.headers['content-type']).toBe(row.contentType);
      return;
    }
    const given = schemaOf(responses[row.status]);
    expect(given === undefined).toBe(row.answer === undefined);
    if (!given) return expect(response.text).toBe('');
    expect(response.json).toEqual(row.answer?.[dialect]);
    expect(Schema.Compile(given).Errors(response.json)).toEqual([true, []]);
  },
);

const crossed = cases.filter(({ row }) => row.body?.crossed);
test.each(crossed)('$route in the $dialect dialect, with the other dialect’s body', async ({ route, dialect, row }) => {
  const scene = await setScene(row.needs);
  const body = row.body?.own[other(dialect)](scene);
  const response = await call(route, scene, { accept: dialects[dialect], body });
  expect([response.status, row.body?.crossed?.[dialect]]).toEqual(
    response.status === row.status ? [row.status, 'taken'] : [400, 'refused'],
  );
});

describe('in the contract’s dialect', () => {
  const withBody = rows.filter(([, row]) => row.body && !row.beyond);

  test.each(withBody)('%s does not treat null as a missing member', async (route, row) => {
    const scene = await setScene(row.needs);
    const body = row.body?.own.contract(scene) ?? {};
    for (const name of Object.keys(body)) {
      const response = await call(route, scene, { accept: dialects.contract, body: { ...body, [name]: null } });
      expect({ name, status: response.status }).toEqual({ name, status: 400 });
    }
  });
});

test.each(rows)('%s answers 415 to an Accept header that only resembles a protocol version', async (route) => {
  const scene: Scene = { ...(await idleScene()), updateId: '00000000-0000-4000-8000-000000000000' };
  const expected = route.startsWith('GET /api/openapi') ? 200 : 415;
  for (const accept of [
    'application/vnd.service+8x',
    'application/vnd.service+8.1',
    'application/vnd.service+8+json',
    'application/vnd.service+08',
    'application/vnd.pulumi+9x',
    'application/vnd.pulumi+9000000',
    'xapplication/vnd.pulumi+9',
    'application/vnd.pulumi+9 application/json',
    'application/json;v="application/vnd.service+8"',
  ]) {
    const response = await call(route, scene, { accept });
    expect({ accept, status: response.status }).toEqual({ accept, status: expected });
  }
});

let idle: Promise<Scene> | undefined;
function idleScene(): Promise<Scene> {
  idle ??= setScene(undefined);
  return idle;
}

test('a project without stacks exists in the contract only, for those who could read each of its stacks', async () => {
  const { auth, organization, path } = await createStack(app);
  await ok(app.call('DELETE', path, { auth }));
  const reader = await person(app, organization, 'member');
  const other = await person(app, organization, 'member');
  const answers = async (by: string) => {
    const found: object[] = [];
    for (const project of ['proj', 'none']) {
      const ask = (accept: string) => app.call('HEAD', `/api/stacks/${organization}/${project}`, { auth: by, accept });
      found.push([project, (await ask(dialects.cli)).status, (await ask(dialects.contract)).status]);
    }
    return found;
  };
  const none = ['none', 404, 404];
  for (const by of [auth, reader.auth]) expect(await answers(by)).toEqual([['proj', 404, 200], none]);
  await grant(app, reader.organizationId, { userId: other.userId }, 'deny', ['read'], { stacks: 'proj/secret-*' });
  for (const by of [auth, reader.auth]) expect(await answers(by)).toEqual([['proj', 404, 200], none]);
  expect(await answers(other.auth)).toEqual([['proj', 404, 404], none]);
});

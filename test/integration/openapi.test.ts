import { beforeAll, describe, expect, test } from '@jest/globals';
import fastJsonStringify from 'fast-json-stringify';
import Schema from 'typebox/schema';
import { resolvedDocument, resolveSchemas } from '../support/openapi.ts';
import { listRoutes, procedureRoutes } from '../support/routes.ts';
import { testApp } from '../support/test-app.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
}
interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { schema: object }> };
  readonly responses: Record<
    string,
    { readonly $ref?: string; readonly description?: string; readonly content?: Record<string, { schema: object }> }
  >;
  readonly security?: readonly Record<string, readonly string[]>[];
  readonly tags: readonly string[];
  readonly summary: string;
}
interface Alternatives {
  readonly anyOf: readonly { readonly required?: string[]; readonly description?: string }[];
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: Record<string, Record<string, object>>;
}

/** The alternatives of a schema that have no name. */
function listUnnamed(schema: object, name: string): string[] {
  const { $ref, anyOf, type } = schema as { $ref?: string; anyOf?: object[]; type?: string };
  if ($ref !== undefined || type === 'null') return [];
  return anyOf?.flatMap((each) => listUnnamed(each, name)) ?? [name];
}

const app = testApp();
let document: Document;
let operations: {
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}[];
beforeAll(async () => {
  const answer = await app.call('GET', '/api/openapi.json', { accept: null });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  document = answer.json;
  const { paths } = (await resolvedDocument(app)) as Document;
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      method,
      operation,
    })),
  );
});

const find = (name: string): Operation => {
  const found = operations.find((candidate) => candidate.name === name);
  if (!found) throw new Error(`No operation ${name}`);
  return found.operation;
};

describe('the OpenAPI document', () => {
  test('is OpenAPI 3.1 with the required root members', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Holdfast', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    for (const part of Object.values(document.components)) {
      for (const name of Object.keys(part)) expect(name).toMatch(/^[A-Za-z0-9._-]+$/);
    }
  });

  test('has every route and no other', () => {
    const routes = listRoutes(app.app)
      .filter((route) => !procedureRoutes.includes(route))
      .map((route) => route.replace(/\(\^[^/]*\)(?=\/|$)/, '').replace(/:(\w+)/g, '{$1}'))
      // Each GET also answers HEAD; only a separate HEAD route is described.
      .filter((route) => !route.startsWith('HEAD ') || route === 'HEAD /api/stacks/{organization}/{project}');
    expect(operations.map(({ name }) => name).sort()).toEqual(routes.sort());
  });

  test('has valid paths whose parameters are all declared once', () => {
    for (const { name, path, operation } of operations) {
      expect(path).toMatch(/^(\/([A-Za-z0-9._-]+|\{\w+\}))+$/);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      expect({ name, parameters: declared.map((parameter) => parameter.name).sort() }).toEqual({
        name,
        parameters: inPath.sort(),
      });
      expect(declared.every((parameter) => parameter.required === true)).toBe(true);
    }
  });

  test('has only references that resolve', () => {
    const text = JSON.stringify(document);
    const references = new Set([...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] as string));
    expect(references.size).toBeGreaterThan(5);
    for (const reference of references) {
      const found = reference
        .replace(/^#\//, '')
        .split('/')
        .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
      expect({ reference, found: typeof found }).toEqual({ reference, found: 'object' });
    }
    expect(text).not.toContain('x-error-statuses');
  });

  test('describes each operation, who may call it and how it may end', () => {
    for (const { name, path, operation } of operations) {
      expect({ name, summary: operation.summary }).toEqual({ name, summary: expect.stringMatching(/./) });
      expect(operation.tags).toHaveLength(1);
      const statuses = Object.keys(operation.responses);
      for (const status of statuses) expect(status).toMatch(/^([1-5]\d\d|5XX)$/);
      // Forms of pages lead to another page.
      const ends = statuses.filter((status) => status.startsWith('2') || status === '303');
      expect({ name, ends: ends.length }).toEqual({ name, ends: 1 });
      for (const response of Object.values(operation.responses))
        expect(response.$ref ?? response.description).toBeTruthy();
      for (const [scheme] of (operation.security ?? []).map((needs) => Object.keys(needs))) {
        expect(Object.keys(document.components['securitySchemes'] ?? {})).toContain(scheme);
      }
      if (operation.security?.length) expect(statuses).toContain('401');
      if (path.startsWith('/api/') && path.includes('{'))
        expect(statuses).toEqual(expect.arrayContaining(['400', '404', '415']));
      if (operation.requestBody) expect(statuses).toEqual(expect.arrayContaining(['400', '413', '415']));
    }
  });

  test('describes the errors of the token exchange as OAuth does', () => {
    const { responses } = find('POST /api/oauth/token');
    expect(Object.keys(responses).sort()).toEqual(['200', '400', '413', '415', '429', '503']);
    expect(JSON.stringify(responses['400'])).toContain('error_description');
    expect(JSON.stringify(responses)).not.toContain('$ref');
  });

  test('has a body for each call that accepts one, though it does not validate payloads', () => {
    const update = '/api/stacks/{organization}/{project}/{stack}/{kind}/{updateId}';
    const bodies: [string, string[]][] = [
      [`PATCH ${update}/checkpoint`, ['version', 'deployment']],
      [`PATCH ${update}/checkpointdelta`, ['version', 'checkpointHash', 'sequenceNumber', 'deploymentDelta']],
      [`PATCH ${update}/journalentries`, ['entries']],
      [`POST ${update}/events/batch`, ['events']],
      ['POST /api/stacks/{organization}/{project}/{stack}/import', ['version', 'deployment']],
      ['POST /api/stacks/{organization}/{project}', ['stackName']],
    ];
    for (const [name, required] of bodies) {
      const schema = find(name).requestBody?.content['application/json']?.schema as { required?: string[] };
      expect({ name, required: schema.required ?? [] }).toEqual({ name, required });
    }
    const inEach: [string, string[][]][] = [
      [
        `PATCH ${update}/checkpointverbatim`,
        [
          ['version', 'untypedDeployment', 'sequenceNumber'],
          ['version', 'deployment', 'sequenceNumber'],
        ],
      ],
      ['PATCH /api/stacks/{organization}/{project}/{stack}/tags', [[], ['tags']]],
      ['POST /api/stacks/{organization}/{project}/{stack}/rename', [[], ['newName']]],
    ];
    for (const [name, required] of inEach) {
      const schema = find(name).requestBody?.content['application/json']?.schema as Alternatives | undefined;
      const anyOf = schema?.anyOf ?? [];
      expect({ name, required: anyOf.map((alternative) => alternative.required ?? []) }).toEqual({ name, required });
      expect(anyOf[1]?.description).toContain('application/vnd.service+8');
    }
    // Responses without a body have no schema.
    for (const { method, operation } of operations) {
      if (method === 'get' || method === 'head') expect(operation.requestBody).toBeUndefined();
    }
    expect(find(`POST ${update}`).requestBody?.required).toBe(false);
    expect(find(`POST ${update}/complete`).requestBody?.required).toBe(true);
  });

  test('names the kinds of update and the token that each phase needs', () => {
    const update = '/api/stacks/{organization}/{project}/{stack}/{kind}/{updateId}';
    const kind = find(`GET ${update}`).parameters?.find((parameter) => parameter.name === 'kind');
    expect(kind).toMatchObject({ schema: { enum: ['update', 'preview', 'refresh', 'destroy'] } });
    expect(find(`PATCH ${update}/checkpoint`).security).toEqual([{ leaseToken: [] }]);
    expect(find(`POST ${update}/cancel`).security).toEqual([{ apiToken: [] }]);
    expect(find('GET /api/capabilities').security).toBeUndefined();
  });

  test('has no query parameter that its route ignores', () => {
    const namesOf = (path: string) =>
      find(`GET /api/stacks/{organization}/{project}/{stack}/${path}`)
        .parameters?.filter((parameter) => parameter.in === 'query')
        .map(({ name }) => name);
    expect(namesOf('updates')).toEqual(['pageSize', 'page']);
    expect(namesOf('updates/latest/previews')).toEqual(['pageSize', 'page', 'output-type']);
  });

  test('names each operation once, in the form that pulumi api accepts', () => {
    for (const { name, operation } of operations) {
      expect({ name, operationId: operation.operationId }).toEqual({
        name,
        operationId: expect.stringMatching(/^[A-Z][A-Za-z]+$/),
      });
    }
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(find('POST /api/stacks/{organization}/{project}').operationId).toBe('CreateStack');
  });

  test('is also there with the parameters that pulumi api fills in', async () => {
    const { json, status } = await app.call('GET', '/api/openapi/pulumi-spec.json', { accept: 'application/json' });
    expect(status).toBe(200);
    const named = (spec: Document) =>
      Object.values(spec.paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(named(json).sort()).toEqual(named(document).sort());
    const stack = json.paths['/api/stacks/{orgName}/{projectName}/{stackName}'].get;
    expect(stack.operationId).toBe('GetStack');
    expect(stack.parameters.map(({ name }: Parameter) => name)).toEqual(['orgName', 'projectName', 'stackName']);
    expect(Object.keys(json.paths).join()).not.toMatch(/\{(organization|project|stack)\}/);
    expect(json.components).toEqual(document.components);
  });

  test('names the bodies and responses of all calls', () => {
    const unnamed: string[] = [];
    for (const [path, methods] of Object.entries(document.paths)) {
      if (!/^\/(api|scim)\//.test(path)) continue;
      for (const [method, { requestBody, responses }] of Object.entries(methods)) {
        const [answer] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
        for (const { content = {} } of [requestBody, responses[answer ?? '']].filter((each) => each !== undefined)) {
          for (const [type, { schema }] of Object.entries(content)) {
            if (/[/+]json$/.test(type)) unnamed.push(...listUnnamed(schema, `${method.toUpperCase()} ${path}`));
          }
        }
      }
    }
    // Their form is that of a document, or of an identity provider.
    expect(unnamed.filter((name) => !/\/openapi|\/scim\//.test(name))).toEqual([]);
    expect(Object.keys(document.components['schemas'] ?? {}).length).toBeGreaterThan(100);
  });

  test('has responses that can be written', () => {
    // The server compiles a schema for its first response only.
    const schemas = operations.flatMap(({ name, operation }) =>
      Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
        Object.values(content).map(({ schema }) => ({ of: `${name} ${status}`, schema })),
      ),
    );
    expect(schemas.length).toBeGreaterThan(100);
    const refused = schemas.filter(({ schema }) => {
      try {
        return typeof fastJsonStringify(schema) !== 'function';
      } catch {
        return true;
      }
    });
    expect(refused.map(({ of }) => of)).toEqual([]);
  });

  test('has an example of each named schema, which the schema allows', () => {
    const schemas = document.components['schemas'] as Record<string, { readonly examples?: readonly object[] }>;
    const wrong: object[] = [];
    for (const [name, schema] of Object.entries(schemas)) {
      const [example] = schema.examples ?? [];
      const [allowed, errors] = Schema.Compile(resolveSchemas(schema, schemas) as Schema.XSchema).Errors(example);
      if (!allowed) wrong.push({ name, errors });
      if (example === undefined || Object.keys(example).length === 0) wrong.push({ name, example });
    }
    expect(wrong).toEqual([]);
  });

  test('has no tool-specific members in its schemas', () => {
    expect(JSON.stringify(document)).not.toMatch(/\[Kind\]|\[Optional\]|~kind|"\$id"|Default Response undefined/);
  });
});

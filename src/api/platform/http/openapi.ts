import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { holdfastVersion } from '../../../shared/platform/config/config.ts';
import { extractComponents } from '../protocol/components.ts';
import { ErrorResponse, ScimErrorResponse } from '../protocol/errors.ts';
import { operationIdOf } from './operation-ids.ts';
import { updateKinds } from './paths.ts';

/** The access, the body and `described.errorStatuses` of a route select its statuses. */
const errorResponses: Readonly<Record<string, string>> = {
  400: 'The request is malformed, or it cannot be carried out',
  401: 'No valid token',
  403: 'A permission is missing, or the lease is no longer valid',
  404: 'Not found, or not visible to the caller',
  409: 'The state of the stack or update does not allow it',
  412: 'The item has changed since you read the ETag in If-Match; nothing was changed',
  413: 'The body is too large, as sent or decompressed',
  414: 'A part of the path exceeds the maximum length of a name',
  415: 'The Accept header names no version of the protocol, or the body has an encoding other than gzip',
  429: 'Too many requests of the token, its user, the client’s address or the organization, or too many attempts. Retry after Retry-After',
  431: 'The URL and the headers of the request are too large',
  '5XX': 'Server error. With status 503, retrying is safe and may succeed after Retry-After',
};

const errorStatusesKey = 'x-error-statuses';
const auditActionKey = 'x-audit-action';

type Transform = NonNullable<FastifyDynamicSwaggerOptions['transform']>;
type RouteSchema = FastifySchema & Record<string, unknown>;

/** The document has the routes' schemas, and what the options of the routes imply. */
export const openApiOptions: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: holdfastVersion,
      description:
        'State backend for the Pulumi CLI. Calls under /api/ name a protocol version in the Accept header: ' +
        '`application/vnd.pulumi+8` or later, or `application/vnd.service+8`. Where a body or a response depends on it, the first alternative is for `vnd.pulumi`, the last for `vnd.service`. Bodies may be gzip. Requests that are not HTTP, or have ' +
        'headers that are too large, get 400, 408 or 431 on any path.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    components: {
      securitySchemes: {
        apiToken: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`token <API token>`' },
        leaseToken: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`update-token <lease>`' },
        sessionCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-holdfast',
          description: 'Browser session; without the prefix `__Host-` if the service is reached over plain HTTP',
        },
        adminToken: { type: 'http', scheme: 'basic', description: 'API token of a site admin as the password' },
      },
    },
  },
  transform: ({ schema, url, route }) => describeRoute((schema ?? {}) as RouteSchema, url, route.config ?? {}),
  transformObject: (document) => {
    if (!('openapiObject' in document)) return document.swaggerObject;
    const { openapiObject } = document;
    const named: Record<string, object> = {};
    extractComponents([ErrorResponse, ScimErrorResponse], named);
    openapiObject.paths = extractComponents(openapiObject.paths ?? {}, named) as typeof openapiObject.paths & object;
    openapiObject.components = {
      ...openapiObject.components,
      schemas: named,
      responses: Object.fromEntries(
        Object.entries(errorResponses).flatMap(([status, description]) => [
          [
            componentName(status),
            {
              description,
              content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorResponse' } } },
            },
          ],
          [
            `Scim${componentName(status)}`,
            {
              description,
              content: { 'application/scim+json': { schema: { $ref: '#/components/schemas/ScimErrorResponse' } } },
            },
          ],
        ]),
      ),
    };
    for (const [path, methods] of Object.entries(openapiObject.paths ?? {})) {
      for (const [method, described] of Object.entries(methods ?? {})) {
        const operation = described as Operation;
        const operationId = operationIdOf(method, path);
        if (operationId !== undefined) operation.operationId = operationId;
        describeErrors(method, operation, path.startsWith('/scim/') ? 'Scim' : '');
      }
    }
    return openapiObject;
  },
};

/** `pulumi api` fills these path parameters in from the current project and stack; by name in our paths. */
const cliParameters: Readonly<Record<string, string>> = {
  organization: 'orgName',
  project: 'projectName',
  stack: 'stackName',
};

/** The document has the names of path parameters that the CLI knows (cmd/pulumi/cloud/resolve.go). */
export function asPulumiSpec<Document extends object>(document: Document): Document {
  const copy = structuredClone(document) as Document & { paths?: Record<string, Record<string, Operation>> };
  const renamed = (name: string): string => cliParameters[name] ?? name;
  for (const methods of Object.values(copy.paths ?? {})) {
    for (const { parameters = [] } of Object.values(methods)) {
      for (const parameter of parameters) if (parameter.in === 'path') parameter.name = renamed(parameter.name);
    }
  }
  copy.paths = Object.fromEntries(
    Object.entries(copy.paths ?? {}).map(([path, methods]) => [
      path.replace(/\{(\w+)\}/g, (_match, name: string) => `{${renamed(name)}}`),
      methods,
    ]),
  );
  return copy;
}

interface Operation {
  operationId?: string;
  parameters?: { name: string; readonly in: string }[];
  responses: Record<string, object>;
  requestBody?: { required?: boolean; content: Record<string, { schema?: { anyOf?: { type?: string }[] } }> };
  [errorStatusesKey]?: string[];
}

function describeRoute(schema: RouteSchema, url: string, config: FastifyContextConfig): ReturnType<Transform> {
  const { audit, described = {}, contractBody } = config;
  const changed: RouteSchema = { ...schema, [errorStatusesKey]: errorStatusesOf(schema, url, config) };
  if (typeof audit === 'string') changed[auditActionKey] = audit;
  if (contractBody) changed['body'] = Type.Union([schema.body as TSchema, contractBody]);
  if (described.body) changed['body'] = described.body;
  if (described.produces) changed['produces'] = described.produces;
  if (described.responses) changed['response'] = described.responses;
  if (url.includes(':kind(')) {
    const params = schema.params as { properties: object; required: string[] };
    changed['params'] = {
      ...params,
      properties: { ...params.properties, kind: { type: 'string', enum: [...updateKinds] } },
      required: [...params.required, 'kind'],
    };
  }
  return { schema: changed, url };
}

function errorStatusesOf(schema: RouteSchema, url: string, config: FastifyContextConfig): string[] {
  const { access, body, anyAccept, rate, described = {} } = config;
  // The format of these errors is not the usual one, so the route describes them.
  if (config.errors === 'oauth') return [];
  const statuses = new Set(described.errorStatuses?.map(String));
  if (rate !== 'never') statuses.add('429');
  if (access) {
    statuses.add('400').add('5XX');
    if (!anyAccept) statuses.add('415');
    if (access.kind !== 'public') statuses.add('401');
    if (access.kind !== 'public' && access.kind !== 'user' && access.kind !== 'session') statuses.add('403');
    if (url.includes(':')) statuses.add('404').add('414');
    if (body === 'payload' || schema.body) statuses.add('413');
  }
  return [...statuses];
}

/** `format`: prefix of the errors' components. */
function describeErrors(method: string, operation: Operation, format: '' | 'Scim'): void {
  for (const status of operation[errorStatusesKey] ?? []) {
    operation.responses[status] =
      method === 'head'
        ? { description: errorResponses[status] ?? '' }
        : { $ref: `#/components/responses/${format}${componentName(status)}` };
  }
  delete operation[errorStatusesKey];
  const body = operation.requestBody;
  if (body?.content['application/json']?.schema?.anyOf?.some(({ type }) => type === 'null')) body.required = false;
}

function componentName(status: string): string {
  return `Error${status}`;
}

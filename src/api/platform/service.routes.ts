import { Type } from 'typebox';
import type { Config } from '../../shared/platform/config/config.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { asPulumiSpec } from './http/openapi.ts';
import { apiToken } from './http/paths.ts';
import type { Caller } from './http/request.ts';
import type { RouteScope } from './http/route-scope.ts';
import { component } from './protocol/components.ts';
import { AnyObject } from './protocol/core.ts';
import {
  CapabilitiesResponse,
  CliVersionResponse,
  DefaultOrganizationResponse,
  UserResponse,
} from './service.schemas.ts';

export interface Services {
  readonly config: Config;
  readonly users: { listMemberships(tokenId: string): Promise<readonly { readonly name: string }[]> };
}

const tags = ['service'];
const user = { kind: 'user' } as const;
/** Below this size, a delta costs the client more than it saves. */
const deltaCutoffBytes = 1024 * 1024;

export function registerServiceRoutes(app: RouteScope, services: Services): void {
  getCapabilities(app, services);
  getUser(app, services);
  getDefaultOrganization(app, services);
  getCliVersion(app);
  listRegistry(app);
  getOpenApi(app);
}

function getCapabilities(app: RouteScope, { config }: Services): void {
  app.get(
    '/api/capabilities',
    {
      // Without a response, the CLI treats the server as an old one.
      config: { access: { kind: 'public' }, rate: 'never' },
      schema: { tags, summary: 'List the capabilities of the server', response: { 200: CapabilitiesResponse } },
    },
    async () => ({
      capabilities: [
        // Deltas are optional, because a CLI that sends them omits pending operations (pkg/backend/httpstate/diffs.go).
        ...(config.checkpointMode === 'delta'
          ? [
              {
                capability: 'delta-checkpoint-uploads-v2',
                version: 2,
                configuration: { checkpointCutoffSizeBytes: deltaCutoffBytes },
              },
            ]
          : []),
        { capability: 'batch-encrypt' },
        { capability: 'begin-update', version: 1 },
        { capability: 'deployment-schema-version', version: 1, configuration: { version: 4 } },
        { capability: 'stack-policy-packs', version: 1 },
      ],
    }),
  );
}

function getUser(app: RouteScope, { users }: Services): void {
  app.get(
    '/api/user',
    {
      config: { access: user, rate: 'held' },
      schema: { tags, summary: 'Get the owner of the token', security: apiToken, response: { 200: UserResponse } },
    },
    async ({ caller }) => {
      const memberships = await users.listMemberships(caller.tokenId);
      return {
        id: caller.userId ?? caller.tokenId,
        githubLogin: caller.login,
        name: caller.displayName || caller.login,
        email: caller.email,
        avatarUrl: '',
        organizations: memberships.map(({ name }) => ({ githubLogin: name, name, avatarUrl: '' })),
        identities: [],
        siteAdmin: caller.siteAdmin,
        ...tokenInfo(caller, memberships[0]?.name),
      };
    },
  );
}

function tokenInfo({ teamName, tokenKind, tokenName }: Caller, organization = '') {
  if (tokenKind === 'personal') return {};
  return { tokenInfo: { name: tokenName ?? '', organization, ...(teamName === null ? {} : { team: teamName }) } };
}

function getDefaultOrganization(app: RouteScope, { users }: Services): void {
  app.get(
    '/api/user/organizations/default',
    {
      config: { access: user, rate: 'held', described: { errorStatuses: [404] } },
      schema: {
        tags,
        summary: 'Get the organization for unqualified stack names',
        security: apiToken,
        response: { 200: DefaultOrganizationResponse },
      },
    },
    async ({ caller }) => {
      const [first] = await users.listMemberships(caller.tokenId);
      // On 404, the CLI uses the user's own name as the organization (pkg/backend/httpstate/stack.go).
      if (!first)
        throw new NotFoundError('You are not a member of any organization yet. Ask an admin of one to add you');
      return { GitHubLogin: first.name, Messages: [] };
    },
  );
}

function getCliVersion(app: RouteScope): void {
  app.get(
    '/api/cli/version',
    {
      config: { access: { kind: 'public' }, rate: 'repeated' },
      schema: { tags, summary: 'Get the versions of the CLI', response: { 200: CliVersionResponse } },
    },
    async () => ({ latestVersion: '3.276.0', oldestWithoutWarning: '3.142.0', latestDevVersion: '3.276.0' }),
  );
}

function listRegistry(app: RouteScope): void {
  // With an empty registry, `package add` reports "not found"; a 404 would make it fail. Before 3.231, the CLI used the paths with
  // `preview`.
  const answers = {
    packages: component('ListPackagesResponse', Type.Object({ packages: Type.Array(Type.Unknown()) }), {
      packages: [],
    }),
    templates: component('ListTemplatesResponse', Type.Object({ templates: Type.Array(Type.Unknown()) }), {
      templates: [],
    }),
  };
  for (const [folder, deprecated] of [
    ['/api/registry', false],
    ['/api/preview/registry', true],
  ] as const) {
    for (const list of ['packages', 'templates'] as const) {
      app.get(
        `${folder}/${list}`,
        {
          config: { access: user, rate: 'repeated' },
          schema: {
            tags,
            deprecated,
            summary: `List registry ${list} (always empty)`,
            security: apiToken,
            response: { 200: answers[list] },
          },
        },
        async () => (list === 'packages' ? { packages: [] } : { templates: [] }),
      );
    }
  }
}

function getOpenApi(app: RouteScope): void {
  const config = {
    access: { kind: 'public' },
    rate: 'repeated',
    anyAccept: true,
    described: { responses: { 200: AnyObject } },
  } as const;
  app.get('/api/openapi.json', { config, schema: { tags, summary: 'Get this document' } }, async (_request, reply) =>
    reply.type('application/json').send(JSON.stringify(app.swagger())),
  );
  app.get(
    '/api/openapi/pulumi-spec.json',
    {
      config,
      schema: { tags, summary: 'Get this document for `pulumi api`, with the names of parameters that it knows' },
    },
    async (_request, reply) => reply.type('application/json').send(JSON.stringify(asPulumiSpec(app.swagger()))),
  );
}

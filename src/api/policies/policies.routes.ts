import { Type } from 'typebox';
import { apiToken, policyPacksPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import {
  CreatePolicyPackRequest,
  CreatePolicyPackResponse,
  ListPolicyPacksResponse,
  OrganizationParams,
  PolicyPackParams,
  PolicyPackResponse,
  PolicyPackSchemaResponse,
  PolicyPackVersionParams,
} from './policies.schemas.ts';
import type { PolicyPackService } from './policy-pack-service.ts';

export interface Services {
  readonly policyPacks: PolicyPackService;
}

const tags = ['policies'];
const read = { access: { kind: 'organization', permission: 'read' }, rate: 'repeated' } as const;
/** A pack is a program that runs on the machine of every user who updates a stack, so only admins manage packs. */
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;
const versionPath = `${policyPacksPath}/:pack/versions/:versionTag`;

export function registerPolicyRoutes(app: RouteScope, services: Services): void {
  beginVersion(app, services);
  publishVersion(app, services);
  listPacks(app, services);
  getLatest(app, services);
  getVersion(app, services);
  getSchema(app, services);
  removePack(app, services);
  removeVersion(app, services);
}

function beginVersion(app: RouteScope, { policyPacks }: Services): void {
  app.post(
    policyPacksPath,
    {
      config: { ...manage, audit: 'policy-pack.begin', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Begin a version of a policy pack, before the upload of its archive',
        security: apiToken,
        params: OrganizationParams,
        body: CreatePolicyPackRequest,
        response: { 200: CreatePolicyPackResponse },
      },
    },
    async ({ params, caller, body, audit }) => {
      const { version, uploadUrl } = await policyPacks.begin(params.organization, caller, body, audit);
      return { version, uploadURI: uploadUrl, requiredHeaders: { 'Content-Type': 'application/octet-stream' } };
    },
  );
}

function publishVersion(app: RouteScope, { policyPacks }: Services): void {
  app.post(
    `${versionPath}/complete`,
    {
      config: { ...manage, audit: 'policy-pack.publish', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Publish a version of a policy pack whose archive was uploaded',
        security: apiToken,
        params: PolicyPackVersionParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, audit }, reply) => {
      const { organization, pack, versionTag } = params;
      await policyPacks.publish({ organization, name: pack, tag: versionTag }, caller, audit);
      return reply.code(204).send(null);
    },
  );
}

function listPacks(app: RouteScope, { policyPacks }: Services): void {
  app.get(
    policyPacksPath,
    {
      config: read,
      schema: {
        tags,
        summary: 'List policy packs',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: ListPolicyPacksResponse },
      },
    },
    async ({ params }) => ({ policyPacks: await policyPacks.list(params.organization) }),
  );
}

function getLatest(app: RouteScope, { policyPacks }: Services): void {
  app.get(
    `${policyPacksPath}/:pack/latest`,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get the newest version of a policy pack',
        security: apiToken,
        params: PolicyPackParams,
        response: { 200: PolicyPackResponse },
      },
    },
    async ({ params }) => policyPacks.get(params.organization, params.pack, null),
  );
}

function getVersion(app: RouteScope, { policyPacks }: Services): void {
  app.get(
    versionPath,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get a version of a policy pack by its tag or number',
        security: apiToken,
        params: PolicyPackVersionParams,
        response: { 200: PolicyPackResponse },
      },
    },
    async ({ params }) => policyPacks.get(params.organization, params.pack, params.versionTag),
  );
}

function getSchema(app: RouteScope, { policyPacks }: Services): void {
  app.get(
    `${versionPath}/schema`,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get the schemas of the configuration of a policy pack, by policy',
        security: apiToken,
        params: PolicyPackVersionParams,
        response: { 200: PolicyPackSchemaResponse },
      },
    },
    async ({ params }) => ({
      configSchema: await policyPacks.schema(params.organization, params.pack, params.versionTag),
    }),
  );
}

function removePack(app: RouteScope, { policyPacks }: Services): void {
  app.delete(
    `${policyPacksPath}/:pack`,
    {
      config: { ...manage, audit: 'policy-pack.remove', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Remove all versions of a policy pack',
        security: apiToken,
        params: PolicyPackParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, audit }, reply) => {
      const { organization, pack } = params;
      await policyPacks.remove({ organization, name: pack, tag: null }, caller, audit);
      return reply.code(204).send(null);
    },
  );
}

function removeVersion(app: RouteScope, { policyPacks }: Services): void {
  app.delete(
    versionPath,
    {
      config: { ...manage, audit: 'policy-pack.remove', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Remove a version of a policy pack',
        security: apiToken,
        params: PolicyPackVersionParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, audit }, reply) => {
      const { organization, pack, versionTag } = params;
      await policyPacks.remove({ organization, name: pack, tag: versionTag }, caller, audit);
      return reply.code(204).send(null);
    },
  );
}

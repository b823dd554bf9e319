import { type TSchema, Type } from 'typebox';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { apiToken, scimPath } from '../../platform/http/paths.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { AnyObject } from '../../platform/protocol/core.ts';
import {
  ScimBody,
  ScimGroup,
  ScimListQuery,
  ScimParams,
  ScimQuery,
  ScimResourceParams,
  ScimUser,
  scimListOf,
} from './scim.schemas.ts';
import { resourceTypes, schemas, serviceProviderConfig } from './scim-discovery.ts';
import type { ScimGroupService } from './scim-group-service.ts';
import { toGroupResource, toListRequest, toListResource, toUserResource, wantsMembers } from './scim-resources.ts';
import type { ScimUserService } from './scim-user-service.ts';
import { sendScimError } from './send-scim-error.ts';

export interface Services {
  readonly config: Config;
  readonly scimGroups: ScimGroupService;
  readonly scimUsers: ScimUserService;
}

const tags = ['scim'];
const scimType = 'application/scim+json';

/** Bodies have the format of SCIM, not of the protocol. */
function common(
  response: { readonly status: number; readonly schema: TSchema },
  errorStatuses: readonly number[] = [],
) {
  return {
    access: { kind: 'organization', permission: 'provision' },
    rate: 'repeated',
    anyAccept: true,
    described: {
      responses: { [response.status]: response.schema },
      ...(response.status === 204 ? {} : { produces: [scimType] }),
      errorStatuses,
    },
  } as const;
}

const ofBody = [409, 415];
const consumes = ['application/json', scimType];

/** Provisioning by the identity provider of an organization (SCIM 2.0). */
export function registerScimRoutes(app: RouteScope, services: Services): void {
  const baseOf = (organization: string): string =>
    `${services.config.publicUrl.replace(/\/+$/, '')}${scimPath.replace(':organization', organization)}`;
  registerDiscovery(app, baseOf);
  readUsers(app, services, baseOf);
  writeUsers(app, services, baseOf);
  readGroups(app, services, baseOf);
  writeGroups(app, services, baseOf);
}

type BaseOf = (organization: string) => string;

function registerDiscovery(app: RouteScope, baseOf: BaseOf): void {
  const documents = { ServiceProviderConfig: serviceProviderConfig, ResourceTypes: resourceTypes, Schemas: schemas };
  for (const [name, documentOf] of Object.entries(documents))
    app.get(
      `${scimPath}/${name}`,
      {
        config: common({ status: 200, schema: AnyObject }),
        errorHandler: sendScimError,
        schema: { tags, summary: `Describe SCIM: ${name}`, security: apiToken, params: ScimParams },
      },
      async ({ params }, reply) => reply.type(scimType).send(documentOf(baseOf(params.organization))),
    );
}

function readUsers(app: RouteScope, { scimUsers }: Services, baseOf: BaseOf): void {
  app.get(
    `${scimPath}/Users`,
    {
      config: common({ status: 200, schema: scimListOf('ListScimUsersResponse', ScimUser) }),
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'List the users of an organization, including users suspended by its provider',
        security: apiToken,
        params: ScimParams,
        querystring: ScimListQuery,
      },
    },
    async ({ params: { organization }, query }, reply) => {
      const list = await scimUsers.list(organization, toListRequest(query));
      const base = baseOf(organization);
      return reply.type(scimType).send(toListResource(list, (user) => toUserResource(base, user, query)));
    },
  );
  app.get(
    `${scimPath}/Users/:id`,
    {
      config: common({ status: 200, schema: ScimUser }),
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Get a user',
        security: apiToken,
        params: ScimResourceParams,
        querystring: ScimQuery,
      },
    },
    async ({ params: { id, organization }, query }, reply) => {
      const user = await scimUsers.get(organization, id);
      return reply.type(scimType).send(toUserResource(baseOf(organization), user, query));
    },
  );
}

const provisionMember: { readonly audit: AuditAction } = { audit: 'member.provision' };

function writeUsers(app: RouteScope, { scimUsers }: Services, baseOf: BaseOf): void {
  app.post(
    `${scimPath}/Users`,
    {
      config: { ...common({ status: 201, schema: ScimUser }, ofBody), ...provisionMember },
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Create a user, or add an existing user of other organizations',
        security: apiToken,
        consumes,
        params: ScimParams,
        body: ScimBody,
      },
    },
    async ({ audit, body, caller, params: { organization } }, reply) => {
      const user = await scimUsers.create(caller, organization, body, audit);
      const base = baseOf(organization);
      return reply
        .code(201)
        .header('location', `${base}/Users/${user.id}`)
        .type(scimType)
        .send(toUserResource(base, user, {}));
    },
  );
  for (const [method, summary] of [
    ['put', 'Replace the attributes of a user'],
    ['patch', 'Change a user: suspend, resume, rename'],
  ] as const)
    app[method](
      `${scimPath}/Users/:id`,
      {
        config: { ...common({ status: 200, schema: ScimUser }, ofBody), ...provisionMember },
        errorHandler: sendScimError,
        schema: { tags, summary, security: apiToken, consumes, params: ScimResourceParams, body: ScimBody },
      },
      async ({ audit, body, caller, params }, reply) => {
        const change =
          method === 'put'
            ? scimUsers.replace(caller, params, body, audit)
            : scimUsers.patch(caller, params, body, audit);
        const user = await change;
        return reply.type(scimType).send(toUserResource(baseOf(params.organization), user, {}));
      },
    );
  app.delete(
    `${scimPath}/Users/:id`,
    {
      config: { ...common({ status: 204, schema: Type.Null() }, [409]), ...provisionMember },
      errorHandler: sendScimError,
      schema: { tags, summary: 'Remove a user', security: apiToken, params: ScimResourceParams },
    },
    async ({ audit, caller, params }, reply) => {
      await scimUsers.remove(caller, params, audit);
      return reply.code(204).send();
    },
  );
}

function readGroups(app: RouteScope, { scimGroups }: Services, baseOf: BaseOf): void {
  app.get(
    `${scimPath}/Groups`,
    {
      config: common({ status: 200, schema: scimListOf('ListScimGroupsResponse', ScimGroup) }),
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'List the groups of the provider of an organization',
        security: apiToken,
        params: ScimParams,
        querystring: ScimListQuery,
      },
    },
    async ({ params: { organization }, query }, reply) => {
      const list = await scimGroups.list(organization, toListRequest(query), wantsMembers(query));
      const base = baseOf(organization);
      return reply.type(scimType).send(toListResource(list, (group) => toGroupResource(base, group, query)));
    },
  );
  app.get(
    `${scimPath}/Groups/:id`,
    {
      config: common({ status: 200, schema: ScimGroup }),
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Get a group',
        security: apiToken,
        params: ScimResourceParams,
        querystring: ScimQuery,
      },
    },
    async ({ params, query }, reply) => {
      const group = await scimGroups.get(params, wantsMembers(query));
      return reply.type(scimType).send(toGroupResource(baseOf(params.organization), group, query));
    },
  );
}

const provisionTeam: { readonly audit: AuditAction } = { audit: 'team.provision' };

function writeGroups(app: RouteScope, { scimGroups }: Services, baseOf: BaseOf): void {
  app.post(
    `${scimPath}/Groups`,
    {
      config: { ...common({ status: 201, schema: ScimGroup }, ofBody), ...provisionTeam },
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Create a group, or adopt the team of the same name',
        security: apiToken,
        consumes,
        params: ScimParams,
        body: ScimBody,
      },
    },
    async ({ audit, body, caller, params: { organization } }, reply) => {
      const group = await scimGroups.create(caller, organization, body, audit);
      const base = baseOf(organization);
      return reply
        .code(201)
        .header('location', `${base}/Groups/${group.id}`)
        .type(scimType)
        .send(toGroupResource(base, group, {}));
    },
  );
  app.put(
    `${scimPath}/Groups/:id`,
    {
      config: { ...common({ status: 200, schema: ScimGroup }, ofBody), ...provisionTeam },
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Replace name and members of a group',
        security: apiToken,
        consumes,
        params: ScimResourceParams,
        body: ScimBody,
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      const group = await scimGroups.replace(caller, params, body, audit);
      return reply.type(scimType).send(toGroupResource(baseOf(params.organization), group, {}));
    },
  );
  app.patch(
    `${scimPath}/Groups/:id`,
    {
      config: { ...common({ status: 204, schema: Type.Null() }, ofBody), ...provisionTeam },
      errorHandler: sendScimError,
      schema: {
        tags,
        summary: 'Rename a group, add and remove members',
        security: apiToken,
        consumes,
        params: ScimResourceParams,
        body: ScimBody,
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      await scimGroups.patch(caller, params, body, audit);
      return reply.code(204).send();
    },
  );
  app.delete(
    `${scimPath}/Groups/:id`,
    {
      config: { ...common({ status: 204, schema: Type.Null() }), ...provisionTeam },
      errorHandler: sendScimError,
      schema: { tags, summary: 'Delete a group', security: apiToken, params: ScimResourceParams },
    },
    async ({ audit, caller, params }, reply) => {
      await scimGroups.remove(caller, params, audit);
      return reply.code(204).send();
    },
  );
}

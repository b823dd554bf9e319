import { Type } from 'typebox';
import { seenByHeader, tagOf } from '../platform/edits/revisions.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams, TeamParams } from '../platform/protocol/core.ts';
import { IfMatchHeaders } from '../platform/protocol/edits.ts';
import { roleScopes } from './role-details.ts';
import { type RoleService, revisionOfRole } from './role-service.ts';
import type { RoleView } from './role-view.ts';
import {
  CreateRoleRequest,
  DescribedRole,
  ListRolesResponse,
  RemoveRoleQuery,
  RoleParams,
  RoleResponse,
  RoleScopesResponse,
  RolesQuery,
  TeamRoleParams,
  UpdateRoleRequest,
} from './roles.schemas.ts';

export interface Services {
  readonly roles: RoleService;
}

const tags = ['roles'];
const path = '/api/orgs/:organization/roles';
const teamPath = '/api/orgs/:organization/teams/:team/roles';
const read = { access: { kind: 'organization', permission: 'read' }, rate: 'repeated' } as const;
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;

/** `pulumi org role` uses these routes. */
export function registerRoleRoutes(app: RouteScope, services: Services): void {
  listRoles(app, services);
  listScopes(app);
  createRole(app, services);
  getRole(app, services);
  updateRole(app, services);
  removeRole(app, services);
  listTeamRoles(app, services);
  assignRole(app, services);
  unassignRole(app, services);
}

function listRoles(app: RouteScope, { roles }: Services): void {
  app.get(
    path,
    {
      config: read,
      schema: {
        tags,
        summary: 'List the roles that grants can give: built-in roles and roles of the organization',
        security: apiToken,
        params: OrganizationParams,
        querystring: RolesQuery,
        response: { 200: ListRolesResponse },
      },
    },
    async ({ params, query }) => {
      const all = await roles.list(params.organization);
      return { roles: (query.uxPurpose || 'role') === 'role' ? all.map(toResponse) : [] };
    },
  );
}

function listScopes(app: RouteScope): void {
  app.get(
    `${path}/scopes`,
    {
      config: read,
      schema: {
        tags,
        summary: 'List the permissions that roles can have',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: RoleScopesResponse },
      },
    },
    async () => ({ stack: [{ name: 'Stacks' as const, scopes: [...roleScopes] }] }),
  );
}

function createRole(app: RouteScope, { roles }: Services): void {
  app.post(
    path,
    {
      config: { ...manage, audit: 'role.create', described: { body: DescribedRole.creation, errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Create a role',
        security: apiToken,
        params: OrganizationParams,
        body: CreateRoleRequest,
        response: { 200: RoleResponse },
      },
    },
    async ({ audit, body, caller, params }) => toResponse(await roles.create(caller, params.organization, body, audit)),
  );
}

function getRole(app: RouteScope, { roles }: Services): void {
  app.get(
    `${path}/:role`,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get a role',
        security: apiToken,
        params: RoleParams,
        response: { 200: RoleResponse },
      },
    },
    async ({ params }, reply) => {
      const role = await roles.get(params.organization, params.role);
      void reply.header('etag', tagOf(revisionOfRole(role)));
      return toResponse(role);
    },
  );
}

function updateRole(app: RouteScope, { roles }: Services): void {
  app.patch(
    `${path}/:role`,
    {
      config: { ...manage, audit: 'role.change', described: { body: DescribedRole.change, errorStatuses: [409, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Change the name, the description or the permissions of a role',
        security: apiToken,
        params: RoleParams,
        body: UpdateRoleRequest,
        response: { 200: RoleResponse },
      },
    },
    async ({ audit, body, caller, headers, params }, reply) => {
      const { organization, role: id } = params;
      const seen = seenByHeader(headers['if-match']);
      const role = await roles.update(caller, organization, { id, request: body }, audit, seen);
      void reply.header('etag', tagOf(revisionOfRole(role)));
      return toResponse(role);
    },
  );
}

function removeRole(app: RouteScope, { roles }: Services): void {
  app.delete(
    `${path}/:role`,
    {
      config: { ...manage, audit: 'role.remove', described: { errorStatuses: [409, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Remove a role; with force, also the grants that give it',
        security: apiToken,
        params: RoleParams,
        querystring: RemoveRoleQuery,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, headers, params, query }, reply) => {
      const { organization, role: id } = params;
      const force = query.force?.toLowerCase() === 'true';
      await roles.remove(caller, organization, { id, force }, audit, seenByHeader(headers['if-match']));
      return reply.code(204).send(null);
    },
  );
}

function listTeamRoles(app: RouteScope, { roles }: Services): void {
  app.get(
    teamPath,
    {
      config: manage,
      schema: {
        tags,
        summary: 'List the roles that a team has on all stacks',
        security: apiToken,
        params: TeamParams,
        response: { 200: ListRolesResponse },
      },
    },
    async ({ params }) => ({ roles: (await roles.listOfTeam(params)).map(toResponse) }),
  );
}

function assignRole(app: RouteScope, { roles }: Services): void {
  app.post(
    `${teamPath}/:role`,
    {
      config: { ...manage, audit: 'role.assign' },
      schema: {
        tags,
        summary: 'Give a team a role on all stacks, replacing its current one',
        security: apiToken,
        params: TeamRoleParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await roles.assign(caller, params, params.role, audit);
      return reply.code(204).send(null);
    },
  );
}

function unassignRole(app: RouteScope, { roles }: Services): void {
  app.delete(
    `${teamPath}/:role`,
    {
      config: { ...manage, audit: 'role.unassign' },
      schema: {
        tags,
        summary: 'Remove a role that a team has on all stacks',
        security: apiToken,
        params: TeamRoleParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await roles.unassign(caller, params, params.role, audit);
      return reply.code(204).send(null);
    },
  );
}

function toResponse(role: RoleView) {
  return {
    id: role.id,
    orgId: role.organizationId,
    name: role.name,
    description: role.description,
    resourceType: 'global' as const,
    uxPurpose: 'role' as const,
    defaultIdentifier: role.builtIn ?? '',
    details: { __type: role.details.__type, permissions: [...role.details.permissions] },
    version: role.roleVersion,
    isOrgDefault: false,
    created: role.createdAt.toISOString(),
    modified: role.changedAt.toISOString(),
  };
}

import { Type } from 'typebox';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams, StackParams } from '../platform/protocol/core.ts';
import { accessHolder, grantResponse } from './access.mappers.ts';
import type { GrantService } from './grant-service.ts';
import {
  AccessQuery,
  AccessResponse,
  ChangeGrantsRequest,
  ChangeGrantsResponse,
  CreateGrantRequest,
  GrantParams,
  GrantResponse,
  GrantsQuery,
  ListGrantsResponse,
} from './grants.schemas.ts';
import type { StackAccessService } from './stack-access-service.ts';

export interface Services {
  readonly grants: GrantService;
  readonly stackAccess: StackAccessService;
}

const tags = ['grants'];
const path = '/api/orgs/:organization/grants';
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;

export function registerGrantRoutes(app: RouteScope, services: Services): void {
  listGrants(app, services);
  createGrant(app, services);
  changeGrants(app, services);
  removeGrant(app, services);
  listAccess(app, services);
}

function listGrants(app: RouteScope, { grants }: Services): void {
  app.get(
    path,
    {
      config: manage,
      schema: {
        tags,
        summary: 'List grants, oldest first: all, or the grants of one user, team or token',
        security: apiToken,
        params: OrganizationParams,
        querystring: GrantsQuery,
        response: { 200: ListGrantsResponse },
      },
    },
    async ({ params, query }) => {
      const page = await grants.list(params.organization, query);
      const { continuationToken } = page;
      return { grants: page.grants.map(grantResponse), ...(continuationToken === null ? {} : { continuationToken }) };
    },
  );
}

function createGrant(app: RouteScope, { grants }: Services): void {
  app.post(
    path,
    {
      config: { ...manage, audit: 'grant.add', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Allow or deny permissions on stacks to a user, a team or a token',
        security: apiToken,
        params: OrganizationParams,
        body: CreateGrantRequest,
        response: { 200: GrantResponse },
      },
    },
    async ({ audit, body, caller, params }) =>
      grantResponse(await grants.create(caller, params.organization, body, audit)),
  );
}

function changeGrants(app: RouteScope, { grants }: Services): void {
  app.patch(
    path,
    {
      config: { ...manage, audit: 'grant.change', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Add grants, and then remove others: all or none',
        security: apiToken,
        params: OrganizationParams,
        body: ChangeGrantsRequest,
        response: { 200: ChangeGrantsResponse },
      },
    },
    async ({ audit, body, caller, params }) => ({
      added: (await grants.change(caller, params.organization, body, audit)).map(grantResponse),
    }),
  );
}

function removeGrant(app: RouteScope, { grants }: Services): void {
  app.delete(
    `${path}/:grant`,
    {
      config: { ...manage, audit: 'grant.remove' },
      schema: {
        tags,
        summary: 'Remove a grant',
        security: apiToken,
        params: GrantParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await grants.remove(caller, params.organization, params.grant, audit);
      return reply.code(204).send(null);
    },
  );
}

function listAccess(app: RouteScope, { stackAccess }: Services): void {
  app.get(
    `${stackPath}/access`,
    {
      config: { access: { kind: 'stack', permission: 'manage' }, rate: 'held' },
      schema: {
        tags,
        summary: 'List the permissions of users or tokens on a stack, with the deciding role or grant',
        security: apiToken,
        params: StackParams,
        querystring: AccessQuery,
        response: { 200: AccessResponse },
      },
    },
    async ({ caller, params, query }) => {
      const page = await stackAccess.list(caller, params, query);
      return {
        holders: page.holders.map(accessHolder),
        grants: page.grants.map(grantResponse),
        ...(page.continuationToken === null ? {} : { continuationToken: page.continuationToken }),
      };
    },
  );
}

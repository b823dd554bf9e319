import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import {
  CreateOrganizationRequest,
  ListOrganizationsResponse,
  OrganizationParams,
  OrganizationResponse,
  PageQuery,
  QuotaResponse,
  SetQuotaRequest,
} from './operator.schemas.ts';
import type { OrganizationDirectory } from './organization-directory.ts';

export interface Services {
  readonly organizationDirectory: OrganizationDirectory;
}

const tags = ['operator'];
const path = '/api/operator/organizations';
const operate = { access: { kind: 'operator' }, rate: 'held' } as const;

export function registerOrganizationDirectoryRoutes(
  app: RouteScope,
  { organizationDirectory: organizations }: Services,
): void {
  app.get(
    path,
    {
      config: operate,
      schema: {
        tags,
        summary: 'List all organizations',
        security: apiToken,
        querystring: PageQuery,
        response: { 200: ListOrganizationsResponse },
      },
    },
    async ({ query }) => {
      const { rows, ...page } = await organizations.list(query.continuationToken);
      return {
        organizations: rows.map(({ createdAt, name }) => ({ name, created: createdAt.toISOString() })),
        ...page,
      };
    },
  );
  app.post(
    path,
    {
      config: { ...operate, audit: 'organization.create', described: { errorStatuses: [404, 409] } },
      schema: {
        tags,
        summary: 'Create an organization with its first admin',
        security: apiToken,
        body: CreateOrganizationRequest,
        response: { 200: OrganizationResponse },
      },
    },
    async ({ audit, body, caller }) => {
      const created = await organizations.create(caller, body, audit);
      return { name: body.name, created: created.toISOString() };
    },
  );
  app.delete(
    `${path}/:name`,
    {
      config: { ...operate, audit: 'organization.delete', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Delete an organization that has no stacks and policy packs',
        security: apiToken,
        params: OrganizationParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await organizations.delete(caller, params.name, audit);
      return reply.code(204).send(null);
    },
  );
  app.get(
    `${path}/:name/quota`,
    {
      config: operate,
      schema: {
        tags,
        summary: 'Get the limits that an organization has of its own',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: QuotaResponse },
      },
    },
    ({ params }) => organizations.getQuota(params.name),
  );
  app.put(
    `${path}/:name/quota`,
    {
      config: { ...operate, audit: 'organization.quota' },
      schema: {
        tags,
        summary: 'Set all limits of an organization',
        description: 'They take effect within 5 s.',
        security: apiToken,
        params: OrganizationParams,
        body: SetQuotaRequest,
        response: { 200: QuotaResponse },
      },
    },
    ({ audit, body, caller, params }) => organizations.setQuota(caller, params.name, body, audit),
  );
}

import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import type { ManagedObjectService } from './managed-object-service.ts';
import {
  ChangeManagedObjectsRequest,
  ListManagedObjectsResponse,
  ManagedObjectsQuery,
} from './managed-objects.schemas.ts';

export interface Services {
  readonly managedObjects: ManagedObjectService;
}

const tags = ['configuration'];
const path = '/api/orgs/:organization/managed-objects';
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;

/** `holdfast apply` uses these routes. */
export function registerManagedObjectRoutes(app: RouteScope, { managedObjects }: Services): void {
  app.get(
    path,
    {
      config: manage,
      schema: {
        tags,
        summary: 'List the objects that a configuration declares',
        security: apiToken,
        params: OrganizationParams,
        querystring: ManagedObjectsQuery,
        response: { 200: ListManagedObjectsResponse },
      },
    },
    async ({ params, query }) => {
      const page = await managedObjects.list(params.organization, query.continuationToken);
      return {
        objects: page.objects.map(({ appliedAt, labels, secretDigest, ...each }) => ({
          ...each,
          labels: JSON.parse(labels) as Record<string, string>,
          ...(secretDigest === null ? {} : { secretDigest }),
          appliedAt: appliedAt.toISOString(),
        })),
        ...(page.continuationToken === null ? {} : { continuationToken: page.continuationToken }),
      };
    },
  );
  app.patch(
    path,
    {
      config: { ...manage, audit: 'configuration.apply', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Note that a configuration declares objects, or no longer declares them',
        description: 'Changes nothing of the objects.',
        security: apiToken,
        params: OrganizationParams,
        body: ChangeManagedObjectsRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      await managedObjects.change(caller, params.organization, body, audit);
      return reply.code(204).send(null);
    },
  );
}

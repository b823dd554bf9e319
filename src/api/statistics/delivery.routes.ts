import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import { DeliveryQuery, DeliveryResponse } from './delivery.schemas.ts';
import type { DeliveryQueries } from './delivery-queries.ts';

export interface Services {
  readonly deliveryQueries: DeliveryQueries;
}

const defaultDays = 30;

export function registerDeliveryRoutes(app: RouteScope, { deliveryQueries }: Services): void {
  app.get(
    '/api/orgs/:organization/delivery',
    {
      config: { access: { kind: 'organization', permission: 'read' }, rate: 'held' },
      schema: {
        tags: ['updates'],
        summary:
          'Show the change rate, failure rate, lead time and time to restore of an organization and its projects',
        description: 'Of live stacks that the caller may read. A run counts some minutes after its end.',
        security: apiToken,
        params: OrganizationParams,
        querystring: DeliveryQuery,
        response: { 200: DeliveryResponse },
      },
    },
    ({ caller, params, query }) => deliveryQueries.sum(caller, params.organization, query.days ?? defaultDays),
  );
}

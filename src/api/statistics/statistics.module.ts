import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { CiQueries } from './ci-queries.ts';
import { registerDeliveryRoutes } from './delivery.routes.ts';
import { registerDeliveryGauges } from './delivery-metrics.ts';
import { DeliveryQueries } from './delivery-queries.ts';
import { registerStatisticsRoutes } from './statistics.routes.ts';
import { StatisticsService } from './statistics-service.ts';

/** Called once per app. */
export function createStatisticsServices(context: ApiContext) {
  registerDeliveryGauges(context.metrics, context.db);
  return {
    statistics: new StatisticsService(context),
    ciQueries: new CiQueries(context),
    deliveryQueries: new DeliveryQueries(context),
  };
}

export function registerStatisticsDomain(
  routes: RouteScope,
  services: Parameters<typeof registerStatisticsRoutes>[1] & Parameters<typeof registerDeliveryRoutes>[1],
): void {
  registerStatisticsRoutes(routes, services);
  registerDeliveryRoutes(routes, services);
}

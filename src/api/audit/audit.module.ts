import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ActivityQueries } from './activity-queries.ts';
import { registerAuditRoutes } from './audit.routes.ts';
import { AuditService } from './audit-service.ts';

/** Called once per app. */
export function createAuditServices(context: ApiContext) {
  return { audit: new AuditService(context), activity: new ActivityQueries(context) };
}

export function registerAuditDomain(routes: RouteScope, services: Parameters<typeof registerAuditRoutes>[1]): void {
  registerAuditRoutes(routes, services);
}

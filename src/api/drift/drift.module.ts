import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { registerDriftRoutes } from './drift.routes.ts';
import { DriftService } from './drift-service.ts';

/** Called once per app. */
export function createDriftServices(context: ApiContext) {
  return { drift: new DriftService(context) };
}

export function registerDriftDomain(routes: RouteScope, services: Parameters<typeof registerDriftRoutes>[1]): void {
  registerDriftRoutes(routes, services);
}

import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ReferenceService } from './reference-service.ts';
import { registerSearchRoutes } from './search.routes.ts';
import { SearchService } from './search-service.ts';

/** Called once per app. */
export function createSearchServices(context: ApiContext) {
  return { search: new SearchService(context), references: new ReferenceService(context) };
}

export function registerSearchDomain(routes: RouteScope, services: Parameters<typeof registerSearchRoutes>[1]): void {
  registerSearchRoutes(routes, services);
}

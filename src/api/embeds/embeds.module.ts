import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { EmbedService } from './embed-service.ts';
import { registerEmbedRoutes } from './embeds.routes.ts';

/** Called once per app. */
export function createEmbedServices(context: ApiContext) {
  return { embeds: new EmbedService(context) };
}

export function registerEmbedDomain(routes: RouteScope, services: Parameters<typeof registerEmbedRoutes>[1]): void {
  registerEmbedRoutes(routes, services);
}

import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { EventQueries } from './event-queries.ts';
import { registerEventRoutes } from './events.routes.ts';
import { LiveService } from './live/live-service.ts';

/** Called once per app. */
export function createEventServices(context: ApiContext) {
  return { events: new EventQueries(context), live: new LiveService(context) };
}

export function registerEventDomain(routes: RouteScope, services: Parameters<typeof registerEventRoutes>[1]): void {
  registerEventRoutes(routes, services);
}

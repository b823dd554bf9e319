import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { WebhookService } from './webhook-service.ts';
import { registerWebhookRoutes } from './webhooks.routes.ts';

/** Called once per app. */
export function createWebhookServices(context: ApiContext) {
  return { webhooks: new WebhookService(context) };
}

export function registerWebhookDomain(routes: RouteScope, services: Parameters<typeof registerWebhookRoutes>[1]): void {
  registerWebhookRoutes(routes, services);
}

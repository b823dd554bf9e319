import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { EmbedService } from './embeds/embed-service.ts';
import { registerEmbedRoutes } from './embeds/embeds.routes.ts';
import { WebhookService } from './webhook-service.ts';
import { registerWebhookRoutes } from './webhooks.routes.ts';

/** The services of webhooks, badges and feeds. Called once per app. */
export function createWebhookServices(context: ApiContext) {
  return { webhooks: new WebhookService(context), embeds: new EmbedService(context) };
}

/** The routes of webhooks, badges and feeds. */
export function registerWebhookDomain(
  routes: RouteScope,
  services: Parameters<typeof registerWebhookRoutes>[1] & Parameters<typeof registerEmbedRoutes>[1],
): void {
  registerWebhookRoutes(routes, services);
  registerEmbedRoutes(routes, services);
}

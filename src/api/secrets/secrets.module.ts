import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import type { ResourceService } from '../state/resource-service.ts';
import { RevealService } from './reveal-service.ts';
import { SecretService } from './secret-service.ts';
import { registerSecretRoutes } from './secrets.routes.ts';

/** Called once per app. */
export function createSecretServices(context: ApiContext, { resources }: { readonly resources: ResourceService }) {
  const secrets = new SecretService(context);
  return { secrets, reveal: new RevealService(context, { resources, secrets }) };
}

export function registerSecretDomain(routes: RouteScope, services: Parameters<typeof registerSecretRoutes>[1]): void {
  registerSecretRoutes(routes, services);
}

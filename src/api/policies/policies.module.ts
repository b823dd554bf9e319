import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { registerPolicyRoutes } from './policies.routes.ts';
import { PolicyGroupService } from './policy-group-service.ts';
import { registerPolicyGroupRoutes } from './policy-groups.routes.ts';
import { PolicyPackService } from './policy-pack-service.ts';
import { PolicyQueries } from './policy-queries.ts';

/** Called once per app. */
export function createPolicyServices(context: ApiContext) {
  return {
    policyPacks: new PolicyPackService(context),
    policyGroups: new PolicyGroupService(context),
    policyQueries: new PolicyQueries(context),
  };
}

export function registerPolicyDomain(
  routes: RouteScope,
  services: Parameters<typeof registerPolicyRoutes>[1] & Parameters<typeof registerPolicyGroupRoutes>[1],
): void {
  registerPolicyRoutes(routes, services);
  registerPolicyGroupRoutes(routes, services);
}

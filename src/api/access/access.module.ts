import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { registerAccessPolicyRoutes } from './access-policy.routes.ts';
import { AccessPolicyService } from './access-policy-service.ts';
import { GrantService } from './grant-service.ts';
import { registerGrantRoutes } from './grants.routes.ts';
import { ManagedObjectService } from './managed-object-service.ts';
import { registerManagedObjectRoutes } from './managed-objects.routes.ts';
import { QuotaQueries } from './quota-queries.ts';
import { RoleService } from './role-service.ts';
import { registerRoleRoutes } from './roles.routes.ts';
import { StackAccessService } from './stack-access-service.ts';

/** Called once per app. */
export function createAccessServices(context: ApiContext) {
  return {
    accessPolicy: new AccessPolicyService(context),
    grants: new GrantService(context),
    limits: new QuotaQueries(context),
    managedObjects: new ManagedObjectService(context),
    roles: new RoleService(context),
    stackAccess: new StackAccessService(context),
  };
}

export function registerAccessDomain(
  routes: RouteScope,
  services: Parameters<typeof registerAccessPolicyRoutes>[1] &
    Parameters<typeof registerGrantRoutes>[1] &
    Parameters<typeof registerManagedObjectRoutes>[1] &
    Parameters<typeof registerRoleRoutes>[1],
): void {
  registerAccessPolicyRoutes(routes, services);
  registerGrantRoutes(routes, services);
  registerManagedObjectRoutes(routes, services);
  registerRoleRoutes(routes, services);
}

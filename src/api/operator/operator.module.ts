import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OperatorQueries } from './operator-queries.ts';
import { OrganizationDirectory } from './organization-directory.ts';
import { registerOrganizationDirectoryRoutes } from './organizations.routes.ts';
import { UserDirectory } from './user-directory.ts';
import { registerUserDirectoryRoutes } from './users.routes.ts';

/** Called once per app. */
export function createOperatorServices(context: ApiContext) {
  return {
    operatorQueries: new OperatorQueries(context),
    organizationDirectory: new OrganizationDirectory(context),
    userDirectory: new UserDirectory(context),
  };
}

export function registerOperatorDomain(
  routes: RouteScope,
  services: Parameters<typeof registerOrganizationDirectoryRoutes>[1] &
    Parameters<typeof registerUserDirectoryRoutes>[1],
): void {
  registerOrganizationDirectoryRoutes(routes, services);
  registerUserDirectoryRoutes(routes, services);
}

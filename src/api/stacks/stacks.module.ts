import type { Config } from '../../shared/platform/config/config.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import type { UpdateService } from '../updates/update-service.ts';
import { registerBeginUpdateRoute } from './begin-update.routes.ts';
import { registerDeletedStackRoutes } from './deleted-stacks.routes.ts';
import { DeletedStacks } from './deleted-stacks.ts';
import { StackBoard } from './stack-board.ts';
import { StackRenaming } from './stack-renaming.ts';
import { StackService } from './stack-service.ts';
import { registerStackRoutes } from './stacks.routes.ts';
import { UpdateBeginning } from './update-beginning.ts';

/** The services of stacks. Called once per app. */
export function createStackServices(
  context: ApiContext,
  { reclaim, updates }: { readonly reclaim: Reclaim; readonly updates: UpdateService },
) {
  return {
    stacks: new StackService(context, reclaim),
    stackBoard: new StackBoard(context),
    deletedStacks: new DeletedStacks(context),
    beginning: new UpdateBeginning(context, updates),
    renaming: new StackRenaming(context, reclaim),
  };
}

/** The routes of stacks. */
export function registerStackDomain(
  routes: RouteScope,
  services: { readonly config: Config } & Parameters<typeof registerBeginUpdateRoute>[1] &
    Parameters<typeof registerStackRoutes>[1] &
    Parameters<typeof registerDeletedStackRoutes>[1],
): void {
  registerStackRoutes(routes, services);
  if (services.config.beginUpdate) registerBeginUpdateRoute(routes, services);
  registerDeletedStackRoutes(routes, services);
}

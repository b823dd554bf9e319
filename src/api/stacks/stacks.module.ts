import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { AttentionQueries } from './attention-queries.ts';
import { registerDeletedStackRoutes } from './deleted-stacks.routes.ts';
import { DeletedStacks } from './deleted-stacks.ts';
import { ImportRuns } from './import-runs.ts';
import { StackQueries } from './stack-queries.ts';
import { StackRenaming } from './stack-renaming.ts';
import { StackService } from './stack-service.ts';
import { registerStackTagRoutes } from './stack-tags.routes.ts';
import { registerStackRoutes } from './stacks.routes.ts';
import { SavedViews } from './views/saved-views.ts';

/** Called once per app. */
export function createStackServices(context: ApiContext, reclaim: Reclaim) {
  return {
    stacks: new StackService(context, reclaim),
    attention: new AttentionQueries(context),
    stackQueries: new StackQueries(context),
    deletedStacks: new DeletedStacks(context),
    importRuns: new ImportRuns(context),
    savedViews: new SavedViews(context),
    renaming: new StackRenaming(context, reclaim),
  };
}

export function registerStackDomain(
  routes: RouteScope,
  services: Parameters<typeof registerStackRoutes>[1] & Parameters<typeof registerDeletedStackRoutes>[1],
): void {
  registerStackRoutes(routes, services);
  registerStackTagRoutes(routes, services);
  registerDeletedStackRoutes(routes, services);
}

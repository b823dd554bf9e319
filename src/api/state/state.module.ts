import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { StateDownloads } from './download-slots.ts';
import { ManualEdits } from './manual-edits.ts';
import { ResourceService } from './resource-service.ts';
import { registerRetentionRoutes } from './retention.routes.ts';
import { RetentionService } from './retention-service.ts';
import { StackDiff } from './stack-diff.ts';
import { registerStateRoutes } from './state.routes.ts';
import { StateService } from './state-service.ts';
import { StateView } from './state-view.ts';
import { ValueReads } from './value-reads.ts';
import { VersionService } from './version-service.ts';
import { registerCheckpointRoutes } from './writes/checkpoints.routes.ts';
import { registerJournalRoutes } from './writes/journal.routes.ts';
import { createSubmitWrite } from './writes/submit-write.ts';

/** Called once per app. */
export function createStateServices(context: ApiContext, reclaim: Reclaim) {
  return {
    states: new StateService(context, reclaim),
    downloads: new StateDownloads(context.blobs),
    manualEdits: new ManualEdits(context, reclaim),
    resources: new ResourceService(context),
    versions: new VersionService(context),
    stackDiff: new StackDiff(context),
    stateView: new StateView(context),
    valueReads: new ValueReads(context),
    retention: new RetentionService(context),
    submitWrite: createSubmitWrite({ ...context, services: context.jobServices }),
  };
}

export function registerStateDomain(
  routes: RouteScope,
  services: Parameters<typeof registerStateRoutes>[1] &
    Parameters<typeof registerCheckpointRoutes>[1] &
    Parameters<typeof registerJournalRoutes>[1] &
    Parameters<typeof registerRetentionRoutes>[1],
): void {
  registerStateRoutes(routes, services);
  registerCheckpointRoutes(routes, services);
  registerJournalRoutes(routes, services);
  registerRetentionRoutes(routes, services);
}

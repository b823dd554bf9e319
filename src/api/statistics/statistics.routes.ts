import { apiToken, updatePath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { UpdateParams } from '../platform/protocol/core.ts';
import { assertUpdateId } from '../updates/updates.routes.ts';
import { UpdateStatisticsResponse } from './statistics.schemas.ts';
import type { StatisticsService, UpdateStatistics } from './statistics-service.ts';

export interface Services {
  readonly statistics: StatisticsService;
}

export function registerStatisticsRoutes(app: RouteScope, { statistics }: Services): void {
  app.get(
    `${updatePath}/statistics`,
    {
      config: { access: { kind: 'stack', permission: 'read' }, rate: 'held' },
      schema: {
        tags: ['updates'],
        summary: 'Show the changes and duration of an update',
        description:
          'Includes statistics of the stack’s updates in the last 90 days. The client reports step times in whole seconds.',
        security: apiToken,
        params: UpdateParams,
        response: { 200: UpdateStatisticsResponse },
      },
    },
    async ({ params }) => {
      assertUpdateId(params.updateId);
      return statisticsResponse(params.updateId, await statistics.get(params, params.updateId));
    },
  );
}

function statisticsResponse(
  updateID: string,
  { changes, failedBefore, steps, unusual, update, usual }: UpdateStatistics,
) {
  const { endReason, isPreview, kind, seconds, status, waitedSeconds } = update;
  return {
    ...{ updateID, kind, isPreview, waitedSeconds, seconds, failedBefore },
    result: endReason === 'cancelled' ? 'cancelled' : status,
    changes,
    isComplete: steps !== null,
    steps: steps && {
      ...steps,
      slowest: [...steps.slowest],
      retries: steps.retries && { ...steps.retries, resources: [...steps.retries.resources] },
      criticalPath: steps.criticalPath && { ...steps.criticalPath, steps: [...steps.criticalPath.steps] },
    },
    usual: usual && {
      count: usual.count,
      ...{ seconds: [...usual.seconds], waitedSeconds: [...usual.waitedSeconds], medians: usual.medians },
      ...{ creates: [...usual.counts.creates], updates: [...usual.counts.updates] },
      ...{ replaces: [...usual.counts.replaces], deletes: [...usual.counts.deletes] },
    },
    unusual: unusual.map(({ name, range, value }) => ({ name, value, range: [...range] })),
  };
}

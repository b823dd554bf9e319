import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { StackParams } from '../platform/protocol/core.ts';
import { DriftStatusResponse, ListDriftRunsQuery, ListDriftRunsResponse } from './drift.schemas.ts';
import type { DriftRunRow, DriftService } from './drift-service.ts';

export interface Services {
  readonly drift: DriftService;
}

const tags = ['drift'];
const config = { access: { kind: 'stack', permission: 'read' }, rate: 'held' } as const;
const maxPageSize = 100;

/** `pulumi stack drift` reads these routes. */
export function registerDriftRoutes(app: RouteScope, { drift }: Services): void {
  app.get(
    `${stackPath}/drift/status`,
    {
      config,
      schema: {
        tags,
        summary: 'Show whether the stack has drifted',
        security: apiToken,
        params: StackParams,
        response: { 200: DriftStatusResponse },
      },
    },
    async ({ params }) => {
      const { isDetected, isRunning, latestUpdateId } = await drift.status(params);
      return { driftDetected: isDetected, latestDriftRun: latestUpdateId ?? '', runInProgress: isRunning };
    },
  );
  app.get(
    `${stackPath}/drift/runs`,
    {
      config,
      schema: {
        tags,
        summary: 'List the runs that compared the state with the cloud',
        security: apiToken,
        params: StackParams,
        querystring: ListDriftRunsQuery,
        response: { 200: ListDriftRunsResponse },
      },
    },
    async ({ params, query }) => {
      const limit = Math.min(query.pageSize ?? 10, maxPageSize);
      // The client's page numbers refer to its own page size.
      const offset = ((query.page ?? 1) - 1) * (query.pageSize ?? 10);
      const { runs, total } = await drift.list(params, { limit, offset });
      return { driftRuns: runs.map(toRun), itemsPerPage: limit, total };
    },
  );
}

function toRun(run: DriftRunRow) {
  const { changes, createdAt, endedAt, isDetected, remedyEndedAt, remedyId, state, status, updateId } = run;
  return {
    id: updateId,
    driftDetected: isDetected,
    created: createdAt.toISOString(),
    status: state === 'waiting' ? 'running' : state === 'done' ? 'succeeded' : 'failed',
    detectUpdate: {
      updateId,
      resourceChanges: JSON.parse(changes) as Record<string, number>,
      modified: (endedAt ?? createdAt).toISOString(),
      status,
    },
    ...(remedyId === null
      ? {}
      : {
          remediateUpdate: {
            updateId: remedyId,
            modified: (remedyEndedAt ?? createdAt).toISOString(),
            status: 'succeeded',
          },
        }),
  };
}

import { Type } from 'typebox';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { DrainUpdateRequest } from '../../shared/protocol/guards.ts';
import type { ApiServices } from '../api-services.ts';
import type { RouteScope } from '../route-scope.ts';
import { apiToken, updatePath } from './paths.ts';
import { assertUpdateId } from './updates.routes.ts';

const tags = ['guards'];

/** What stops updates before they do more. */
export function registerGuardRoutes(app: RouteScope, services: ApiServices): void {
  drainUpdate(app, services);
}

function drainUpdate(app: RouteScope, { guards }: ApiServices): void {
  app.post(
    `${updatePath}/drain`,
    {
      config: {
        access: { kind: 'stack', permission: 'write' },
        rate: 'never',
        audit: 'update.drain',
        goesFirst: true,
        described: { errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'End an update gently',
        description:
          'The update begins nothing more. What it has begun is finished and saved; then its client ends it.',
        security: apiToken,
        params: UpdateParams,
        body: Type.Union([DrainUpdateRequest, Type.Null()]),
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      assertUpdateId(params.updateId);
      await guards.drain(params, params.updateId, caller, body?.reason ?? '', audit);
      return reply.code(204).send(null);
    },
  );
}

import { Type } from 'typebox';
import { StackParams } from '../../shared/platform/protocol/core.ts';
import { UntypedDeployment } from '../../shared/platform/protocol/payloads.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import type { PolicyPackService } from '../policies/policy-pack-service.ts';
import { startResponse, userMessages } from '../updates/updates.mappers.ts';
import { newUpdate } from '../updates/updates.routes.ts';
import { BeginUpdateRequest, CreateUpdateResponse, StartUpdateResponse } from '../updates/updates.schemas.ts';
import { stackResponse, warnOfFaults } from './stacks.mappers.ts';
import { StackResponse } from './stacks.schemas.ts';
import type { UpdateBeginning } from './update-beginning.ts';

/** apitype.BeginUpdateResponse. If `deployment` is absent, the client exports it. */
const BeginUpdateResponse = Type.Object({
  ...StartUpdateResponse.properties,
  ...CreateUpdateResponse.properties,
  deployment: Type.Optional(UntypedDeployment),
  stack: StackResponse,
});

/** What the routes call. */
export interface Services {
  readonly beginning: UpdateBeginning;
  readonly policyPacks: PolicyPackService;
}

/** Combines the four calls that begin an update. The operator must enable it: no released CLI uses it yet. */
export function registerBeginUpdateRoute(app: RouteScope, { beginning, policyPacks }: Services): void {
  app.post(
    `${stackPath}/begin-update`,
    {
      config: {
        // The service asks for more unless it is a preview.
        access: { kind: 'stack', permission: 'preview' },
        rate: 'held',
        audit: 'update.start',
        goesFirst: true,
        described: { responses: { 200: BeginUpdateResponse }, errorStatuses: [409] },
      },
      schema: {
        tags: ['updates'],
        summary: 'Create and start an update, and return its stack and state',
        security: apiToken,
        params: StackParams,
        body: BeginUpdateRequest,
      },
    },
    async ({ params, body, caller, dialect, audit }, reply) => {
      // The CLI creates an import of resources as an update, too.
      const kind = body.updateKind === 'resource-import' ? 'update' : body.updateKind;
      const request = {
        ...newUpdate(kind, body.program ?? {}),
        tags: body.tags ?? null,
        journalVersion: body.journalVersion ?? 0,
      };
      const requiredPolicies = dialect === 'contract' ? [] : await policyPacks.listRequired(params);
      const { begun, release } = await beginning.begin(params, caller, dialect, request, audit);
      // Either the response was sent or the client disconnected.
      reply.raw.once('finish', release).once('close', release);
      warnOfFaults(reply, begun.view);
      const json = JSON.stringify({
        ...startResponse(dialect, begun.started),
        updateID: begun.updateId,
        requiredPolicies,
        messages: userMessages(begun.messages),
        stack: stackResponse(dialect, begun.view),
      });
      const parts = begun.state
        ? [Buffer.from(`${json.slice(0, -1)},"deployment":`), begun.state, Buffer.from('}')]
        : [Buffer.from(json)];
      return reply.type('application/json; charset=utf-8').send(Buffer.concat(parts));
    },
  );
}

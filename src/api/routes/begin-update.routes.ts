import { StackParams } from '../../shared/protocol/core.ts';
import { BeginUpdateRequest, BeginUpdateResponse } from '../../shared/protocol/updates.ts';
import type { ApiServices } from '../api-services.ts';
import type { RouteScope } from '../route-scope.ts';
import { apiToken, stackPath } from './paths.ts';
import { stackAnswer, startAnswer, warnOfFaults } from './response-mappers.ts';
import { newUpdate } from './updates.routes.ts';

/** The four calls at the beginning of an update as one. Only where the operator has it advertised: no released CLI asks for it yet. */
export function registerBeginUpdateRoute(app: RouteScope, { beginning }: ApiServices): void {
  app.post(
    `${stackPath}/begin-update`,
    {
      config: {
        access: { kind: 'organization', role: 'member' },
        described: { answers: { 200: BeginUpdateResponse }, refusals: [409] },
      },
      schema: {
        tags: ['updates'],
        summary: 'Create and start an update, and get its stack and state',
        security: apiToken,
        params: StackParams,
        body: BeginUpdateRequest,
      },
    },
    async ({ params, body, caller, dialect }, reply) => {
      // The CLI creates what imports resources as an update, too.
      const kind = body.updateKind === 'resource-import' ? 'update' : body.updateKind;
      const request = {
        ...newUpdate(kind, body.program ?? {}),
        tags: body.tags ?? null,
        journalVersion: body.journalVersion ?? 0,
      };
      const { begun, release } = await beginning.begin(params, caller, dialect, request);
      // The answer is out, or the client has gone.
      reply.raw.once('finish', release).once('close', release);
      warnOfFaults(reply, begun.view);
      const answer = JSON.stringify({
        ...startAnswer(dialect, begun.started),
        updateID: begun.updateId,
        requiredPolicies: [],
        messages: [],
        stack: stackAnswer(dialect, begun.view),
      });
      const parts = begun.state
        ? [Buffer.from(`${answer.slice(0, -1)},"deployment":`), begun.state, Buffer.from('}')]
        : [Buffer.from(answer)];
      return reply.type('application/json; charset=utf-8').send(Buffer.concat(parts));
    },
  );
}

import { Type } from 'typebox';
import { appendEvents } from '../../shared/jobs/definitions.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { ContractEventsResponse } from '../../shared/protocol/contract.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { EventBatchRequest, EventsResponse } from '../../shared/protocol/payloads.ts';
import { EventsQuery } from '../../shared/protocol/updates.ts';
import type { ApiServices } from '../api-services.ts';
import type { RouteScope } from '../route-scope.ts';
import { sendPieces } from '../streamed-answer.ts';
import { lastTokenAnswer } from './answers.ts';
import { fenceOf } from './checkpoints.routes.ts';
import { apiToken, leaseToken, updatePath } from './paths.ts';
import { assertUpdateId } from './updates.routes.ts';

const tags = ['events'];

/** Engine events of an update: recorded as they come, read back in order of sequence. */
export function registerEventRoutes(app: RouteScope, services: ApiServices): void {
  recordEvents(app, services);
  listEvents(app, services);
}

function recordEvents(app: RouteScope, { submitWrite }: ApiServices): void {
  app.post(
    `${updatePath}/events/batch`,
    {
      config: { access: { kind: 'lease', fenced: true }, body: 'payload', described: { body: EventBatchRequest } },
      schema: {
        tags,
        summary: 'Record engine events',
        security: leaseToken,
        params: UpdateParams,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await submitWrite(request, appendEvents, { fence: fenceOf(request.lease) });
      return reply.code(204).send(null);
    },
  );
}

function listEvents(app: RouteScope, { events }: ApiServices): void {
  app.get(
    `${updatePath}/events`,
    {
      config: {
        access: { kind: 'organization', role: 'viewer' },
        described: { answers: { 200: Type.Union([EventsResponse, ContractEventsResponse]) } },
      },
      schema: {
        tags,
        summary: 'Read engine events',
        security: apiToken,
        params: UpdateParams,
        querystring: EventsQuery,
      },
    },
    async ({ params, query, dialect }, reply) => {
      assertUpdateId(params.updateId);
      const after = readContinuation(query.continuationToken);
      // Asked before the page: what comes between would be missing from it, and null ends the client's loop.
      const atEnd = lastTokenAnswer(dialect, { isActive: await events.isActive(params.updateId, params), after });
      return sendPieces(reply, events.pageJson(params.updateId, { after, urn: query.urn ?? null }, atEnd));
    },
  );
}

/** The sequence number after which to go on; -1 for the beginning, since sequences start at 0. */
function readContinuation(token: string | undefined): number {
  if (token === undefined || token === '') return -1;
  if (!/^(-1|\d{1,15})$/.test(token)) throw new InvalidRequestError('continuationToken is not a sequence number');
  return Number(token);
}

import { Type } from 'typebox';
import { appendEvents } from '../../shared/jobs/definitions.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { ContractEventsResponse } from '../../shared/protocol/contract.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { EventBatchRequest, EventsResponse } from '../../shared/protocol/payloads.ts';
import { EventsQuery } from '../../shared/protocol/updates.ts';
import type { ApiServices } from '../api-services.ts';
import type { RouteScope } from '../route-scope.ts';
import { sendChunks } from '../streamed-response.ts';
import { fenceOf } from './checkpoints.routes.ts';
import { apiToken, leaseToken, updatePath } from './paths.ts';
import { lastPageToken } from './response-mappers.ts';
import { assertUpdateId } from './updates.routes.ts';

const tags = ['events'];

/** Engine events of an update: recorded as they arrive, listed in order of sequence. */
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
        described: { responses: { 200: Type.Union([EventsResponse, ContractEventsResponse]) } },
      },
      schema: {
        tags,
        summary: 'List engine events',
        security: apiToken,
        params: UpdateParams,
        querystring: EventsQuery,
      },
    },
    async ({ params, query, dialect }, reply) => {
      const version = readVersion(params.updateId);
      if (version === null) assertUpdateId(params.updateId);
      const after = readContinuation(query.continuationToken);
      // Check the status before reading the page: events added in between would be missing from it, and a null token ends the
      // client's loop.
      const update = await events.find(version ?? params.updateId, params);
      const atEnd = lastPageToken(dialect, { isActive: update.isActive, after });
      return sendChunks(reply, events.pageJson(update.id, { after, urn: query.urn ?? null }, atEnd));
    },
  );
}

/** Reads a stack version given in place of an update's id, which the CLI's history does not print. Null if there is none. */
function readVersion(text: string): number | null {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}

/** The sequence number to continue after; -1 for the beginning, because sequences start at 0. */
function readContinuation(token: string | undefined): number {
  if (token === undefined || token === '') return -1;
  if (!/^(-1|\d{1,15})$/.test(token)) throw new InvalidRequestError('continuationToken is not a sequence number');
  return Number(token);
}

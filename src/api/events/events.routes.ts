import { Type } from 'typebox';
import { eventWrite } from '../../shared/jobs/job-list.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { apiToken, updatePath } from '../platform/http/paths.ts';
import type { Dialect } from '../platform/http/request.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { ContractEventsResponse } from '../platform/protocol/contract.ts';
import { UpdateParams } from '../platform/protocol/core.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import { fencedWrite, fenceOf, type SubmitWrite } from '../state/writes/submit-write.ts';
import { assertUpdateId } from '../updates/updates.routes.ts';
import type { EventQueries } from './event-queries.ts';
import { EventBatchRequest, EventsQuery, EventsResponse } from './events.schemas.ts';

export interface Services {
  readonly events: EventQueries;
  readonly submitWrite: SubmitWrite;
}

const tags = ['events'];

/** Events are recorded as they arrive, and listed in order of sequence. */
export function registerEventRoutes(app: RouteScope, services: Services): void {
  recordEvents(app, services);
  listEvents(app, services);
}

function recordEvents(app: RouteScope, { submitWrite }: Services): void {
  app.post(
    `${updatePath}/events/batch`,
    fencedWrite(EventBatchRequest, { summary: 'Record engine events', tag: 'events' }),
    async (request, reply) => {
      await submitWrite(request, eventWrite, { fence: fenceOf(request.lease) });
      return reply.code(204).send(null);
    },
  );
}

function listEvents(app: RouteScope, { events }: Services): void {
  app.get(
    `${updatePath}/events`,
    {
      config: {
        access: { kind: 'stack', permission: 'read' },
        rate: 'repeated',
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
      const newestFirst = query.order === 'desc';
      const beyond = readContinuation(query.continuationToken, newestFirst);
      // Read before the page, which would otherwise lack events added in between: a null token ends the client's loop.
      const update = await events.find(version ?? params.updateId, params);
      // In descending order, the list ends with the start of the update: nothing more arrives there.
      const atEnd = lastPageToken(dialect, { isActive: update.isActive && !newestFirst, after: beyond });
      const selection = { beyond, newestFirst, urn: query.urn ?? null, types: readTypes(query.type) };
      // Clients of the contract choose their own sequences and polling intervals.
      const page = { atEnd, follow: dialect === 'pulumi', gone: clientGone(reply) };
      return sendChunks(reply, events.pageJson(update, selection, page));
    },
  );
}

/** The CLI's history does not print ids of updates, so a stack version may stand in place of one. */
function readVersion(text: string): number | null {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}

/** The page starts after this sequence number, or before it in descending order. Sequences start at 0. */
function readContinuation(token: string | undefined, newestFirst: boolean): number {
  if (token === undefined || token === '') return newestFirst ? Number.MAX_SAFE_INTEGER : -1;
  const sequence = /^(-1|\d{1,16})$/.test(token) ? Number(token) : Number.NaN;
  if (!Number.isSafeInteger(sequence)) throw new InvalidRequestError('continuationToken is not a sequence number');
  return sequence;
}

/** Null for all. The CLI also sends numbers, which are codes of another service and are ignored. */
function readTypes(given: string | readonly string[] | undefined): readonly string[] | null {
  const names = [given ?? []].flat().filter((type) => !/^\d*$/.test(type));
  return names.length > 0 ? names : null;
}

/** The token of an empty page. Null ends the CLI's loop; the contract's tokens are always strings. */
function lastPageToken(dialect: Dialect, page: { isActive: boolean; after: number }): string | null {
  return dialect === 'contract' || page.isActive ? String(page.after) : null;
}

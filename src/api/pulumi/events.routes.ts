import { Type } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { scanMembers } from '../../shared/platform/json/json-text.ts';
import { UpdateParams } from '../../shared/protocol/core.ts';
import { EventBatchRequest, EventsResponse } from '../../shared/protocol/payloads.ts';
import { EventsQuery } from '../../shared/protocol/updates.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import { commitPayload } from '../checkpoints/payload.ts';
import type { RouteScope } from '../route-scope.ts';
import { updateNotFound } from '../updates/update-service.ts';
import { fenceOf } from './checkpoints.routes.ts';
import { apiToken, leaseToken, updatePath } from './paths.ts';
import { assertUpdateId } from './updates.routes.ts';

const tags = ['events'];
const pageSize = 500;
const envelope = new Set(['sequence', 'timestamp', 'type']);

/** Engine events of an update: recorded as they come, read back in order of sequence. */
export function registerEventRoutes(app: RouteScope, context: ApiContext): void {
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
      const { lease } = request;
      await commitPayload(context, request, {
        kind: 'events',
        direct: async (payload) => context.eventWriter.append(fenceOf(lease), await payload.inflated()),
        job: (handover) => ({ name: 'append-events', schema: 1, fence: fenceOf(lease), ...handover }),
      });
      return reply.code(204).send(null);
    },
  );

  app.get(
    `${updatePath}/events`,
    {
      config: { access: { kind: 'organization', role: 'viewer' }, described: { answers: { 200: EventsResponse } } },
      schema: {
        tags,
        summary: 'Read engine events',
        security: apiToken,
        params: UpdateParams,
        querystring: EventsQuery,
      },
    },
    async ({ params, query }, reply) => {
      assertUpdateId(params.updateId);
      const after = readContinuation(query.continuationToken);
      // Asked before the page: what comes between would be missing from it, and null ends the client's loop.
      const update = await context.updates.findInfo(params.updateId, params);
      if (!update) throw updateNotFound(params.updateId);
      const rows = await context.events.list(update.id, after, pageSize);
      const last = rows.at(-1);
      const token = last ? String(last.sequence) : isActive(update.status) ? String(after) : null;
      // A page may thus be empty while its token leads on.
      const wanted = query.urn === undefined ? rows : rows.filter((row) => urnOf(row.event) === query.urn);
      const events = wanted.map((row) => withType(row.event)).join(',');
      return reply
        .type('application/json; charset=utf-8')
        .send(`{"events":[${events}],"continuationToken":${JSON.stringify(token)}}`);
    },
  );
}

/** The contract's events carry their type, which is the name of their payload; the text stays otherwise as it is. */
function withType(event: string): string {
  const members = scanMembers(Buffer.from(event));
  if (!members || members.has('type')) return event;
  const payload = [...members.keys()].find((name) => !envelope.has(name));
  if (payload === undefined) return event;
  const rest = event.slice(event.indexOf('{') + 1);
  return `{"type":${JSON.stringify(payload)},${rest}`;
}

/** The resource that an event is about, wherever its payload says so; undefined when it is about none. */
function urnOf(event: string): string | undefined {
  type Payload = { metadata?: { urn?: string } | null; urn?: string; resourceUrn?: string } | null;
  for (const payload of Object.values(JSON.parse(event) as Record<string, Payload>)) {
    const urn = payload?.metadata?.urn ?? payload?.urn ?? payload?.resourceUrn;
    if (urn !== undefined) return urn;
  }
  return undefined;
}

/** The sequence number after which to go on; -1 for the beginning, since sequences start at 0. */
function readContinuation(token: string | undefined): number {
  if (token === undefined || token === '') return -1;
  if (!/^(-1|\d{1,15})$/.test(token)) throw new InvalidRequestError('continuationToken is not a sequence number');
  return Number(token);
}

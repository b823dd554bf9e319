import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { StackParams } from '../platform/protocol/core.ts';
import type { HistoryService } from './history-service.ts';
import { historyView } from './updates.mappers.ts';
import {
  HistoryQuery,
  HistoryResponse,
  LatestUpdateResponse,
  PreviewListResponse,
  PreviewsQuery,
} from './updates.schemas.ts';

export interface Services {
  readonly history: HistoryService;
  readonly stacks: { get(ref: StackParams): Promise<{ readonly id: string }> };
}

const common = { tags: ['history'], security: apiToken, params: StackParams };
/** Histories are sent in chunks, and scripts name a large number to get all updates. */
const maxUpdates = 1_000_000;
/** These lists are held in memory as a whole. */
const maxPreviews = 1_000;
const config = { access: { kind: 'stack', permission: 'read' }, rate: 'repeated' } as const;

/** Includes previews in the contract's dialect only. */
export function registerHistoryRoutes(app: RouteScope, services: Services): void {
  listUpdates(app, services);
  getLatestUpdate(app, services);
  listLatestPreviews(app, services);
}

function listUpdates(app: RouteScope, { history, stacks }: Services): void {
  app.get(
    `${stackPath}/updates`,
    {
      config: { ...config, described: { responses: { 200: HistoryResponse } } },
      schema: { ...common, summary: 'List updates, newest first', querystring: HistoryQuery },
    },
    async ({ params, query, dialect }, reply) => {
      const page = readPage(query, maxUpdates);
      const stackId = (await stacks.get(params)).id;
      return sendChunks(reply, listJson(history.json(stackId, page, historyView(dialect))));
    },
  );
}

function getLatestUpdate(app: RouteScope, { history, stacks }: Services): void {
  app.get(
    `${stackPath}/updates/latest`,
    {
      config: { ...config, described: { responses: { 200: LatestUpdateResponse } } },
      schema: { ...common, summary: 'Get the most recent update' },
    },
    async ({ params, dialect }, reply) => {
      const { id } = await stacks.get(params);
      const latest = await history.latestJson(id, historyView(dialect));
      if (!latest) throw new NotFoundError('The stack has not been updated yet');
      const response = async function* (): AsyncGenerator<string> {
        yield '{"info":';
        yield* latest;
        yield '}';
      };
      return sendChunks(reply, response());
    },
  );
}

function listLatestPreviews(app: RouteScope, { history, stacks }: Services): void {
  app.get(
    `${stackPath}/updates/latest/previews`,
    {
      config,
      schema: {
        ...common,
        summary: 'List the most recent previews; with `output-type=service`, as histories list updates',
        querystring: PreviewsQuery,
        response: { 200: PreviewListResponse },
      },
    },
    async ({ params, query, dialect }, reply) => {
      const page = readPage(query, maxPreviews) ?? { limit: 1, offset: 0 };
      const { id } = await stacks.get(params);
      const view = { ...historyView(dialect), shown: 'previews' } as const;
      if (query['output-type'] === 'service') return sendChunks(reply, listJson(history.json(id, page, view)));
      const previews = await history.listLatestPreviews(id, page);
      return { updates: previews.map((updateID) => ({ updateID })) };
    },
  );
}

async function* listJson(updates: AsyncIterable<string>): AsyncGenerator<string> {
  yield '{"updates":[';
  yield* updates;
  yield ']}';
}

/** `page` counts from 1. Null: all updates. */
function readPage(
  query: { pageSize?: string; page?: string },
  maxSize: number,
): { limit: number; offset: number } | null {
  const limit = readCount('pageSize', query.pageSize, maxSize);
  const page = readCount('page', query.page) ?? 1;
  if (limit === null) return page === 1 ? null : { limit: 0, offset: 0 };
  return { limit, offset: Math.min(limit * (page - 1), Number.MAX_SAFE_INTEGER) };
}

function readCount(name: string, text: string | undefined, max = Number.POSITIVE_INFINITY): number | null {
  if (text === undefined || text === '' || text === '0') return null;
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > max) {
    const range = Number.isFinite(max) ? `from 1 to ${max}` : 'above 0';
    throw new InvalidRequestError(`${name} is not a whole number ${range}`);
  }
  return count;
}

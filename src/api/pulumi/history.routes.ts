import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { StackParams } from '../../shared/protocol/core.ts';
import {
  HistoryQuery,
  HistoryResponse,
  LatestUpdateResponse,
  PreviewListResponse,
} from '../../shared/protocol/updates.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { ApiContext } from '../api-context.ts';
import type { RouteScope } from '../route-scope.ts';
import { pieceBytes, sendPieces } from '../streamed-answer.ts';
import { historyJson, updateInfoJson, wholeBytes } from '../updates/update-info.ts';
import { apiToken, stackPath } from './paths.ts';

const config = { access: { kind: 'organization', role: 'viewer' } } as const;

/** What happened to a stack. Previews are not part of it. */
export function registerHistoryRoutes(app: RouteScope, context: ApiContext): void {
  const common = { tags: ['history'], security: apiToken, params: StackParams };

  const getStackId = async (ref: StackRef): Promise<string> => {
    const stack = await context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return stack.id;
  };

  app.get(
    `${stackPath}/updates`,
    {
      config: { ...config, described: { answers: { 200: HistoryResponse } } },
      schema: { ...common, summary: 'History, newest first', querystring: HistoryQuery },
    },
    async ({ params, query }, reply) => {
      const page = readPage(query);
      const stackId = await getStackId(params);
      const answer = async function* (): AsyncGenerator<string> {
        yield '{"updates":[';
        yield* historyJson(context.history, stackId, page);
        yield ']}';
      };
      return sendPieces(reply, answer());
    },
  );

  app.get(
    `${stackPath}/updates/latest`,
    {
      config: { ...config, described: { answers: { 200: LatestUpdateResponse } } },
      schema: { ...common, summary: 'The most recent update' },
    },
    async ({ params }, reply) => {
      const newest = { before: null, offset: 0 };
      const stackId = await getStackId(params);
      const [latest] = await context.history.list(stackId, newest, { limit: 1, maxBytes: pieceBytes, wholeBytes });
      if (!latest) throw new NotFoundError('The stack has not been updated yet');
      const answer = async function* (): AsyncGenerator<string> {
        yield '{"info":';
        yield* updateInfoJson(context.history, latest);
        yield '}';
      };
      return sendPieces(reply, answer());
    },
  );

  app.get(
    `${stackPath}/updates/latest/previews`,
    {
      config,
      schema: {
        ...common,
        summary: 'The most recent previews',
        querystring: HistoryQuery,
        response: { 200: PreviewListResponse },
      },
    },
    async ({ params, query }) => {
      const page = readPage(query) ?? { limit: 1, offset: 0 };
      const previews = await context.updates.findLatestPreviews(await getStackId(params), page);
      return { updates: previews.map(({ id }) => ({ updateID: id })) };
    },
  );
}

/** `pageSize` and `page` (from 1); no pageSize means that the first page has all. */
function readPage(query: { pageSize?: string; page?: string }): { limit: number; offset: number } | null {
  const limit = readCount('pageSize', query.pageSize, 1000);
  const page = readCount('page', query.page) ?? 1;
  if (limit === null) return page === 1 ? null : { limit: 0, offset: 0 };
  return { limit, offset: Math.min(limit * (page - 1), Number.MAX_SAFE_INTEGER) };
}

function readCount(name: string, text: string | undefined, most = Number.POSITIVE_INFINITY): number | null {
  if (text === undefined || text === '' || text === '0') return null;
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > most) {
    const range = Number.isFinite(most) ? `from 1 to ${most}` : 'above 0';
    throw new InvalidRequestError(`${name} is not a whole number ${range}`);
  }
  return count;
}

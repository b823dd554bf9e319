import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { mapDatabaseError } from '../../shared/platform/db/sqlstate.ts';
import { AppError, SlowRequestError } from '../../shared/platform/errors/errors.ts';
import type { ErrorResponse } from '../../shared/protocol/errors.ts';
import { mustCloseAfterResponse } from '../server/unread-bodies.ts';
import { otherProduct } from './other-products.ts';

/** The answer to an error: status, sentence, and when to come back. */
interface Answer {
  readonly status: number;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
}

/**
 * The only place where errors become answers. The CLI trusts `code` in the body over the status line, so the two are
 * always the same number (pkg/backend/httpstate/client/api.go).
 */
export function registerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler(sendNotFound);
  // Before the body, which is nobody's: by itself Fastify has it parsed and then finds that there is no route.
  app.addHook('onRequest', async (request, reply) => (request.is404 ? sendNotFound(request, reply) : undefined));
  app.addHook('onSend', async (request, reply) => closeBehindUnread(request, reply));
}

function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?')[0] ?? '';
  return send(reply, {
    status: 404,
    message: otherProduct(path) ?? `There is nothing at ${request.method} ${path.slice(0, 200)}`,
    retryAfterSeconds: undefined,
  });
}

/** What is left of a body stands before the next request of its connection. */
function closeBehindUnread({ raw }: FastifyRequest, reply: FastifyReply): void {
  const isBegun = raw.readableDidRead && !raw.complete;
  if (isBegun || mustCloseAfterResponse(raw)) void reply.header('connection', 'close');
}

export function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Errors from before the first hook (a path that is no URL) have no id yet.
  void reply.header('x-pulumi-request-id', request.id);
  const error = mapDatabaseError(thrown);
  const answer = answerTo(error);
  closeBehindUnread(request, reply);
  // A slow client is no fault of the server's.
  if (error instanceof SlowRequestError) request.log.info({ err: error }, 'request rejected');
  else if (answer.status >= 500) request.log.error({ err: error }, 'request failed');
  else request.log.debug({ err: error }, 'request rejected');
  return send(reply, answer);
}

function answerTo(error: unknown): Answer {
  if (error instanceof AppError) {
    const retry = error.retryAfterSeconds ?? (error.status === 503 || error.status === 429 ? 1 : undefined);
    return { status: error.status, message: error.message, retryAfterSeconds: retry };
  }
  const { statusCode, message } = (error ?? {}) as Partial<FastifyError>;
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return { status: statusCode, message: message ?? 'Bad request', retryAfterSeconds: undefined };
  }
  return {
    status: 500,
    message: 'An unexpected error occurred; see this request id in the server log',
    retryAfterSeconds: undefined,
  };
}

function send(reply: FastifyReply, { status, message, retryAfterSeconds }: Answer): FastifyReply {
  if (retryAfterSeconds !== undefined) void reply.header('retry-after', retryAfterSeconds);
  const body: ErrorResponse = { code: status, message };
  return reply.code(status).type('application/json; charset=utf-8').serializer(JSON.stringify).send(body);
}

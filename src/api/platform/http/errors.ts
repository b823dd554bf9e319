import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { mapDatabaseError } from '../../../shared/platform/db/sqlstate.ts';
import { AppError, SlowRequestError } from '../../../shared/platform/errors/errors.ts';
import { ReadOnlyError } from '../../../shared/platform/read-only/read-only-mode.ts';
import type { ErrorResponse, OAuthErrorResponse } from '../protocol/errors.ts';
import { mustCloseAfterResponse, respondAfterBody } from '../server/unread-bodies.ts';
import { otherProduct } from './other-products.ts';
import { setSecurityHeaders } from './security-headers.ts';

export interface ErrorReply {
  readonly status: number;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
}

const slowRequests = new WeakSet<FastifyRequest['raw']>();

type ErrorFormat = (error: ErrorReply) => { readonly type: string; readonly body: object };

const errorFormat: ErrorFormat = ({ message, status }) => {
  const body: ErrorResponse = { code: status, message };
  return { type: 'application/json; charset=utf-8', body };
};

/**
 * The only place where errors become responses. The CLI trusts `code` in the body over the status line, so both are the same number
 * (pkg/backend/httpstate/client/api.go).
 */
export function registerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler(sendNotFound);
  // Before the body is read: by default, Fastify parses the body before it reports that there is no route.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendNotFound(request, reply);
    else done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => sendAfterBody(request, reply, done));
}

/** Responds to an error before any hook, so that none of them runs. */
export function sendFrameworkError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  sendAfterBody(request, reply, () => void sendError(error, request, reply));
}

function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?')[0] ?? '';
  return send(reply, {
    status: 404,
    message: otherProduct(path) ?? `There is no route ${request.method} ${path.slice(0, 200)}`,
    retryAfterSeconds: undefined,
  });
}

/** Closes the connection after the response if the rest of the body never came. */
function sendAfterBody({ raw }: FastifyRequest, reply: FastifyReply, respond: () => void): void {
  const send = (): void => {
    if (mustCloseAfterResponse(raw)) void reply.header('connection', 'close');
    respond();
  };
  if (slowRequests.has(raw)) send();
  else respondAfterBody(raw, send);
}

/** Whether a stream ended too soon. With compressed responses, this happens when the client leaves before they begin. */
function isEarlyClose(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

export function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  format: ErrorFormat = errorFormat,
): FastifyReply {
  const errorReply = prepareError(thrown, request, reply);
  return request.routeOptions?.config?.errors === 'oauth'
    ? sendOAuth(reply, errorReply, thrown)
    : send(reply, errorReply, format);
}

/** Logs the error and sets the headers of its response. */
export function prepareError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): ErrorReply {
  // Responses to errors before the first hook (a path that is not a valid URL) have no id yet.
  void reply.header('x-pulumi-request-id', request.id);
  setSecurityHeaders(reply);
  const error = mapDatabaseError(thrown);
  const errorReply = toErrorReply(error);
  // A slow client is not a server error.
  if (error instanceof SlowRequestError) {
    slowRequests.add(request.raw);
    request.log.info({ err: error }, 'request rejected');
  } else if (error instanceof ReadOnlyError) request.log.info({ err: error }, 'request rejected');
  else if (isEarlyClose(error) && request.raw.socket.destroyed)
    request.log.debug({ err: error }, 'the client left before the response');
  else if (errorReply.status >= 500) request.log.error({ err: error }, 'request failed');
  else request.log.debug({ err: error }, 'request rejected');
  if (errorReply.retryAfterSeconds !== undefined) void reply.header('retry-after', errorReply.retryAfterSeconds);
  return errorReply;
}

/** RFC 6749, 5.2. The CLI shows the body as it is. */
function sendOAuth(reply: FastifyReply, { message, status }: ErrorReply, error: unknown): FastifyReply {
  const own = error instanceof AppError && error.code.includes('_') ? error.code : null;
  const general = status === 429 || status === 503 ? 'temporarily_unavailable' : 'server_error';
  const body: OAuthErrorResponse = {
    error: own ?? (status < 500 && status !== 429 ? 'invalid_request' : general),
    error_description: message,
  };
  return reply.code(status).type('application/json; charset=utf-8').serializer(JSON.stringify).send(body);
}

function toErrorReply(error: unknown): ErrorReply {
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

function send(reply: FastifyReply, error: ErrorReply, format: ErrorFormat = errorFormat): FastifyReply {
  const { body, type } = format(error);
  return reply.code(error.status).type(type).serializer(JSON.stringify).send(body);
}

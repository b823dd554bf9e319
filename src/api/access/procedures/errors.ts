import { TRPCError } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { mapDatabaseError } from '../../../shared/platform/db/sqlstate.ts';
import { AppError, InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { EditConflictError } from '../../platform/edits/revisions.ts';
import type { ErrorReply } from '../../platform/http/errors.ts';
import { SearchQueryError } from '../../platform/http/search-query-error.ts';

type Code = TRPCError['code'];

const codes: Readonly<Record<number, Code>> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_SUPPORTED',
  409: 'CONFLICT',
  412: 'PRECONDITION_FAILED',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  503: 'SERVICE_UNAVAILABLE',
};
const statuses = new Map(Object.entries(codes).map(([status, code]) => [code, Number(status)]));
const maxMessageChars = 500;
const unexpected = 'An unexpected error occurred; see this request id in the server log';

export interface ErrorShape {
  readonly message: string;
  readonly code: number;
  readonly data: {
    /** tRPC's name of the status. */
    readonly code: Code;
    readonly httpStatus: number;
    /** `code` of AppError. */
    readonly kind: string;
    readonly retryAfterSeconds: number | null;
    readonly path: string | null;
    /** Position in a query, in characters from 0. */
    readonly span: { readonly start: number; readonly end: number } | null;
  };
}

export function causeOf(error: unknown): unknown {
  if (!(error instanceof TRPCError)) return mapDatabaseError(error);
  const { cause, code, message } = error;
  const issue = firstIssue(cause);
  if (issue !== null) return new InvalidRequestError(issue);
  if (code === 'NOT_FOUND') return new OtherReleaseError();
  // tRPC has rejected a malformed request, with its own message.
  if (code !== 'INTERNAL_SERVER_ERROR') return new ProtocolError(code, message);
  return cause === undefined ? error : mapDatabaseError(cause);
}

/** The only place where errors of procedures become responses. Hides unexpected errors. */
export function shapeOf(thrown: unknown, path: string | null): ErrorShape {
  const error = causeOf(thrown);
  if (!(error instanceof AppError))
    return shape({ status: 500, message: unexpected, retryAfterSeconds: undefined }, 'fault', path);
  const { message, retryAfterSeconds } = error;
  // Callers of procedures send no headers, so an edit conflict is no failed precondition.
  const status = error instanceof EditConflictError ? 409 : error.status;
  const retry = retryAfterSeconds ?? (status === 503 || status === 429 ? 1 : undefined);
  const shown = shape({ status, message, retryAfterSeconds: retry }, error.code, path);
  if (!(error instanceof SearchQueryError)) return shown;
  return { ...shown, data: { ...shown.data, span: { start: error.start, end: error.end } } };
}

/** Like `shapeOf`, for errors of whole requests, outside procedures. */
export function shapeOfReply(reply: ErrorReply, thrown: unknown): ErrorShape {
  const kind = thrown instanceof AppError ? thrown.code : reply.status < 500 ? 'invalid-request' : 'fault';
  return shape(reply, kind, null);
}

function shape({ message, retryAfterSeconds, status }: ErrorReply, kind: string, path: string | null): ErrorShape {
  const code = codeOf(status);
  return {
    message: message.slice(0, maxMessageChars),
    code: TRPC_ERROR_CODES_BY_KEY[code],
    data: {
      code,
      httpStatus: status,
      kind,
      retryAfterSeconds: retryAfterSeconds ?? null,
      path: path?.slice(0, maxMessageChars) ?? null,
      span: null,
    },
  };
}

/** tRPC rejects the request before a procedure runs. */
class ProtocolError extends AppError {
  override readonly name = 'ProtocolError';
  override readonly status: number;
  override readonly code = 'invalid-request';

  constructor(code: Code, message: string) {
    super(message);
    this.status = statuses.get(code) ?? 400;
  }
}

/** During a rollout, a page may come from another release; its next call reaches that release again. */
class OtherReleaseError extends AppError {
  override readonly name = 'OtherReleaseError';
  override readonly status = 404;
  override readonly code = 'other-release';

  constructor() {
    super('The server runs a different release than this page: reload the page if the error persists');
  }
}

function codeOf(status: number): Code {
  return codes[status] ?? (status >= 500 ? 'INTERNAL_SERVER_ERROR' : 'BAD_REQUEST');
}

/** Null for errors that are not about an input schema. */
function firstIssue(cause: unknown): string | null {
  const { issues } = (cause ?? {}) as { issues?: readonly { message: string; path?: readonly unknown[] }[] };
  const issue = Array.isArray(issues) ? issues[0] : undefined;
  return issue === undefined
    ? null
    : `input${(issue.path ?? []).map((part: unknown) => `/${String(part)}`).join('')} ${issue.message}`;
}

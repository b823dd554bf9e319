import { TRPCClientError } from '@trpc/client';
import { proxyTexts } from '../texts.tsx';

/** A throttled read is retried after the seconds that the server requests, up to this maximum. */
const maxWaitSeconds = 10;
const maxAttempts = 3;
/** After its attempts, a failed read is repeated at this interval. */
const repeatSeconds = 10;

interface ErrorData {
  readonly code?: string;
  readonly kind?: string;
  readonly retryAfterSeconds?: number | null;
  readonly span?: { readonly start: number; readonly end: number } | null;
}

/** Null: no procedure has answered. */
function dataOf(error: unknown): ErrorData | null {
  if (!(error instanceof TRPCClientError)) return null;
  const data: unknown = error.data;
  return typeof data === 'object' ? data : null;
}

/** Null: the server was not reached. A server of another release lacks only the procedure. */
export function errorCode(error: unknown): string | null {
  const data = dataOf(error);
  return data?.kind === 'other-release' ? 'SERVICE_UNAVAILABLE' : (data?.code ?? null);
}

export function isUnreached(error: unknown): boolean {
  return error instanceof TRPCClientError && errorCode(error) === null;
}

/** The answer may be an HTML page, for example. */
export class ProxyAnswerError extends Error {
  override readonly name = 'ProxyAnswerError';
  constructor(status: number) {
    super(status < 400 ? proxyTexts.answeredWithPage(status) : proxyTexts.answeredInPlace(status));
  }
}

/** Returns null if the server answered. */
export function proxyAnswer(error: unknown): string | null {
  return error instanceof TRPCClientError && error.cause instanceof ProxyAnswerError ? error.cause.message : null;
}

export function isEditConflict(error: unknown): boolean {
  return dataOf(error)?.kind === 'edit-conflict';
}

export function isDeletedByRule(error: unknown): boolean {
  return ['state-deleted', 'events-deleted'].includes(dataOf(error)?.kind ?? '');
}

/** A page must stop showing data that is gone, or no longer visible to this user. */
export function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'NOT_FOUND' || code === 'FORBIDDEN';
}

/** Positions are in characters of the query, from 0. */
export function errorSpan(error: unknown): { readonly start: number; readonly end: number } | null {
  return dataOf(error)?.span ?? null;
}

/** Retries do not help against a refusal, unless it is temporary. */
export function mayRetry(failures: number, error: unknown): boolean {
  if (failures >= maxAttempts) return false;
  const code = errorCode(error);
  if (code === 'TOO_MANY_REQUESTS') return (dataOf(error)?.retryAfterSeconds ?? 1) <= maxWaitSeconds;
  return code === null || code === 'INTERNAL_SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE';
}

/** Milliseconds before the next attempt: the time that the server requests, but at least 1, 2 and 4 s. */
export function retryDelay(failures: number, error: unknown): number {
  const seconds = Math.min(dataOf(error)?.retryAfterSeconds ?? 0, maxWaitSeconds);
  return Math.max(1_000 * 2 ** failures, 1_000 * seconds);
}

/** Milliseconds after which a failed read is retried while its page is shown. False: a retry would not help. */
export function repeatAfter(error: unknown): number | false {
  const code = errorCode(error);
  if (!isUnreached(error) && code !== 'TOO_MANY_REQUESTS' && code !== 'SERVICE_UNAVAILABLE') return false;
  return 1_000 * Math.max(repeatSeconds, dataOf(error)?.retryAfterSeconds ?? 0);
}

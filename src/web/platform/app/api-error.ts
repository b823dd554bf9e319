import { TRPCClientError } from '@trpc/client';

/** Reads that were refused for now are tried again after what the server says, in seconds, but not later than this. */
const maxWaitSeconds = 10;
const maxAttempts = 3;
/** What has failed all the same is asked for again by itself, this often. */
const repeatSeconds = 10;

interface ErrorData {
  readonly code?: string;
  readonly kind?: string;
  readonly retryAfterSeconds?: number | null;
  readonly place?: { readonly start: number; readonly end: number } | null;
}

/** What the server says of an error. Null: no procedure has answered. */
function dataOf(error: unknown): ErrorData | null {
  if (!(error instanceof TRPCClientError)) return null;
  const data: unknown = error.data;
  return typeof data === 'object' ? data : null;
}

/** Whether an error came from a procedure, and its code. Null: the server was not reached. */
export function errorCode(error: unknown): string | null {
  return dataOf(error)?.code ?? null;
}

/** Whether no server has answered. */
export function isUnreached(error: unknown): boolean {
  return error instanceof TRPCClientError && errorCode(error) === null;
}

/** Whether somebody else has changed what was to be changed. */
export function isEditConflict(error: unknown): boolean {
  return dataOf(error)?.kind === 'edit-conflict';
}

/** Whether what was there is not there any more, or not for this user: a page may not go on showing it. */
export function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'NOT_FOUND' || code === 'FORBIDDEN';
}

/** Where in a query an error is, in characters from 0. */
export function errorPlace(error: unknown): { readonly start: number; readonly end: number } | null {
  return dataOf(error)?.place ?? null;
}

/** Whether a failed read is tried again. Refusals do not change by asking again, unless they are for now. */
export function mayRetry(failures: number, error: unknown): boolean {
  if (failures >= maxAttempts) return false;
  const code = errorCode(error);
  if (code === 'TOO_MANY_REQUESTS') return (dataOf(error)?.retryAfterSeconds ?? 1) <= maxWaitSeconds;
  return code === null || code === 'INTERNAL_SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE';
}

/** Milliseconds before the next try: what the server says, at least 1, 2 and 4 s. */
export function retryDelay(failures: number, error: unknown): number {
  const seconds = Math.min(dataOf(error)?.retryAfterSeconds ?? 0, maxWaitSeconds);
  return Math.max(1_000 * 2 ** failures, 1_000 * seconds);
}

/** Milliseconds after which a failed read is asked for again while its page is shown. False: that would not help. */
export function repeatAfter(error: unknown): number | false {
  const code = errorCode(error);
  if (!isUnreached(error) && code !== 'TOO_MANY_REQUESTS' && code !== 'SERVICE_UNAVAILABLE') return false;
  return 1_000 * Math.max(repeatSeconds, dataOf(error)?.retryAfterSeconds ?? 0);
}

import { S3ServiceException } from '@aws-sdk/client-s3';
import { tlsFaultOf } from '../tls/certificates.ts';
import { type BlobStoreFault, BlobStoreUnavailableError } from './blob-store.ts';

const throttling = new Set([
  'SlowDown',
  'TooManyRequests',
  'Throttling',
  'ThrottlingException',
  'RequestLimitExceeded',
]);
const timeouts = new Set(['TimeoutError', 'RequestTimeout', 'ETIMEDOUT']);
const network = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
const full = new Set(['XMinioStorageFull', 'QuotaExceeded', 'XMinioAdminBucketQuotaExceeded']);

/**
 * True only if S3 itself reports that the key does not exist. A bare 404 from a proxy, a wrong endpoint or a missing bucket does not count,
 * nor does a 404 to HEAD, which has no body with the reason.
 */
export function isNoSuchKey(error: unknown): boolean {
  return isS3Error(error, 'NoSuchKey') && error.$metadata.httpStatusCode === 404;
}

/** The range of a read begins after the last byte. Also takes a BlobStoreUnavailableError with that cause. */
export function isPastEnd(error: unknown): boolean {
  return isS3Error(error instanceof BlobStoreUnavailableError ? error.cause : error, 'InvalidRange');
}

export function isS3Error(error: unknown, name: string): error is S3ServiceException {
  return error instanceof S3ServiceException && error.name === name;
}

/** The response text stays in `cause`. */
export function toUnavailable(operation: string, error: unknown): BlobStoreUnavailableError {
  if (error instanceof BlobStoreUnavailableError) return error;
  const tlsFault = tlsFaultOf(error);
  if (tlsFault !== null)
    return new BlobStoreUnavailableError('misconfigured', `${tlsFault} (${operation})`, { cause: error });
  const status = statusOf(error);
  const code = codeOf(error);
  const reply = status === undefined ? code : `${code}, HTTP ${status}`;
  const fault = faultOf(code, status);
  return new BlobStoreUnavailableError(fault, `blob store ${phrases[fault]} (${reply}, ${operation})`, {
    cause: error,
  });
}

const phrases: Record<BlobStoreFault, string> = {
  denied: 'denied access',
  full: 'is full',
  misconfigured: 'cannot serve this bucket or request',
  throttled: 'asks to slow down',
  timeout: 'did not answer in time',
  unreachable: 'cannot be reached',
  faulty: 'failed',
};

/** Errors of temporary credentials. AWS responds with 400. */
const expired = new Set(['ExpiredToken', 'ExpiredTokenException', 'InvalidToken', 'TokenRefreshRequired']);

function faultOf(code: string, status: number | undefined): BlobStoreFault {
  if (timeouts.has(code)) return 'timeout';
  if (network.has(code)) return 'unreachable';
  if (throttling.has(code) || status === 429) return 'throttled';
  if (full.has(code) || status === 507) return 'full';
  if (code === 'CredentialsProviderError' || expired.has(code) || status === 401 || status === 403) return 'denied';
  // A retried CompleteMultipartUpload whose first response was lost.
  if (code === 'NoSuchUpload') return 'faulty';
  if (status !== undefined && status >= 300 && status < 500) return 'misconfigured';
  return 'faulty';
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** The system code of a network error comes first: the SDK calls a broken connection TimeoutError. */
function codeOf(error: unknown): string {
  if (error instanceof S3ServiceException) return error.name;
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'unknown';
}

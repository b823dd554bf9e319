import { S3ServiceException } from '@aws-sdk/client-s3';
import { tlsFaultOf } from '../tls/trust.ts';
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
 * True only when S3 itself says that the key is not there. A bare 404, as a proxy, a wrong endpoint or a missing bucket gives
 * it, is none; nor is a 404 to HEAD, which has no body to say why.
 */
export function isNoSuchKey(error: unknown): boolean {
  return isS3Error(error, 'NoSuchKey') && error.$metadata.httpStatusCode === 404;
}

/** True when the answer was the S3 error `name`. */
export function isS3Error(error: unknown, name: string): error is S3ServiceException {
  return error instanceof S3ServiceException && error.name === name;
}

/** `error` of the SDK as one of the port; `doing` says what was asked. The text of the answer stays in `cause`. */
export function toUnavailable(doing: string, error: unknown): BlobStoreUnavailableError {
  if (error instanceof BlobStoreUnavailableError) return error;
  const tlsFault = tlsFaultOf(error);
  if (tlsFault !== null)
    return new BlobStoreUnavailableError('misconfigured', `${tlsFault} (${doing})`, { cause: error });
  const status = statusOf(error);
  const code = codeOf(error);
  const answer = status === undefined ? code : `${code}, HTTP ${status}`;
  const fault = faultOf(code, status);
  return new BlobStoreUnavailableError(fault, `blob store ${sentence[fault]} (${answer}, ${doing})`, { cause: error });
}

const sentence: Record<BlobStoreFault, string> = {
  denied: 'denied access',
  full: 'is full',
  misconfigured: 'cannot serve this bucket or request',
  throttled: 'asks to slow down',
  timeout: 'did not answer in time',
  unreachable: 'cannot be reached',
  faulty: 'failed',
};

function faultOf(code: string, status: number | undefined): BlobStoreFault {
  if (timeouts.has(code)) return 'timeout';
  if (network.has(code)) return 'unreachable';
  if (throttling.has(code) || status === 429) return 'throttled';
  if (full.has(code) || status === 507) return 'full';
  if (code === 'CredentialsProviderError' || status === 401 || status === 403) return 'denied';
  // The answer to a repeated CompleteMultipartUpload whose first answer was lost.
  if (code === 'NoSuchUpload') return 'faulty';
  if (status !== undefined && status >= 300 && status < 500) return 'misconfigured';
  return 'faulty';
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

/** The name of an S3 error, or the system's code of a network error: the SDK names a cut connection TimeoutError. */
function codeOf(error: unknown): string {
  if (error instanceof S3ServiceException) return error.name;
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'unknown';
}

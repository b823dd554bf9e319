import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client } from '@aws-sdk/client-s3';
import { inSpan } from '../tracing/tracing.ts';

export interface S3Options {
  readonly bucket: string;
  readonly region: string;
  /** An S3-compatible server; AWS if missing. */
  readonly endpoint?: string | null;
  readonly forcePathStyle: boolean;
  /** Includes the trailing `/`. */
  readonly prefix?: string;
  /** Maximum time without progress. A connection that transfers bytes is not closed. */
  readonly requestTimeoutMs: number;
  readonly connectTimeoutMs?: number;
  /** Maximum time from sending one request (at most one part) to its response headers. */
  readonly attemptTimeoutMs?: number;
  /** Includes the first one. */
  readonly maxAttempts?: number;
  /** For tests. Default: the AWS credential chain. */
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  /** The profile of the AWS files that contains the credentials. */
  readonly profile?: string;
  readonly pageSize?: number;
  /** The bucket must permit locks. */
  readonly lock?: { readonly mode: 'GOVERNANCE' | 'COMPLIANCE'; readonly days: number } | null;
}

const maxSockets = 128;
/** Longer than the SDK's pause between attempts. */
const retryPauseMs = 2_000;

export interface S3Clients {
  /** For everything except reading blobs. */
  readonly requests: S3Client;
  /**
   * A slow reader can leave its connection idle for any time, so there is no idle limit. The connections are separate, so that reads cannot
   * block puts and health checks.
   */
  readonly reads: S3Client;
  /** Maximum time until the response to a read begins, over all attempts. */
  readonly readDeadlineMs: number;
}

/** Sends nothing, so missing credentials show up on the first call. */
export function createS3Clients(options: S3Options): S3Clients {
  const { requestTimeoutMs, connectTimeoutMs = 3_000, maxAttempts = 3 } = options;
  const attemptTimeoutMs = options.attemptTimeoutMs ?? requestTimeoutMs * 4;
  const shared = {
    region: options.region,
    forcePathStyle: options.forcePathStyle,
    maxAttempts,
    retryMode: 'standard',
    // Compatible servers reject or ignore the newer checksums. SigV4 signs the SHA-256 of every body anyway.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(options.endpoint ? { endpoint: options.endpoint } : {}),
    ...(options.profile ? { profile: options.profile } : {}),
  } as const;
  const handler = (limits: { requestTimeout: number; socketTimeout: number }) => ({
    ...limits,
    connectionTimeout: connectTimeoutMs,
    throwOnRequestTimeout: true,
    httpAgent: new HttpAgent({ keepAlive: true, maxSockets }),
    httpsAgent: new HttpsAgent({ keepAlive: true, maxSockets }),
  });
  const { accessKeyId, secretAccessKey } = options;
  const requests = new S3Client({
    ...shared,
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    requestHandler: handler({ requestTimeout: attemptTimeoutMs, socketTimeout: requestTimeoutMs }),
  });
  const reads = new S3Client({
    ...shared,
    credentials: requests.config.credentials,
    requestHandler: handler({ requestTimeout: requestTimeoutMs, socketTimeout: 0 }),
  });
  for (const client of [requests, reads])
    client.middlewareStack.add(
      (next, { commandName = 'request' }) =>
        (args) =>
          inSpan(`s3 ${commandName.replace(/Command$/, '')}`, { role: 'client' }, () => next(args)),
      { step: 'initialize' },
    );
  return { requests, reads, readDeadlineMs: maxAttempts * (requestTimeoutMs + retryPauseMs) };
}

/** In ms since 1970, by the store's last response: the clock of this process may be wrong. */
export function storeNow({ requests }: S3Clients): number {
  return Date.now() + requests.config.systemClockOffset;
}

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client } from '@aws-sdk/client-s3';

export interface S3Options {
  readonly bucket: string;
  readonly region: string;
  /** URL of an S3-compatible server; AWS itself when missing. */
  readonly endpoint?: string | null;
  /** Bucket in the path, not in the host name. */
  readonly forcePathStyle: boolean;
  /** Put before every key, `/` included. */
  readonly prefix?: string;
  /** Longest wait for progress, in milliseconds: a connection on which bytes move is not cut. */
  readonly requestTimeoutMs: number;
  /** Longest wait for a connection, in milliseconds. */
  readonly connectTimeoutMs?: number;
  /** Longest time from sending one request, of at most one part, to the head of its answer, in milliseconds. */
  readonly attemptTimeoutMs?: number;
  /** Attempts per request, the first included. */
  readonly maxAttempts?: number;
  /** For tests; otherwise the usual AWS chain (environment, files, container and instance roles). */
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  /** Blobs per page of `list`. */
  readonly pageSize?: number;
}

const maxSockets = 128;
/** Above what the SDK waits between attempts, in milliseconds. */
const retryPauseMs = 2_000;

export interface S3Clients {
  /** For all but reading blobs. */
  readonly requests: S3Client;
  /**
   * For reading blobs. A reader at its own pace leaves its connection silent for as long as it likes, so there is no
   * limit on silence, and the connections it holds are not those that puts and health checks need.
   */
  readonly reads: S3Client;
  /** Longest wait for the answer to a read to begin, all attempts included, in milliseconds. */
  readonly readDeadlineMs: number;
}

/** Clients for one bucket; nothing is sent yet, and the lack of credentials shows with the first call. */
export function createS3Clients(options: S3Options): S3Clients {
  const { requestTimeoutMs, connectTimeoutMs = 3_000, maxAttempts = 3 } = options;
  const attemptTimeoutMs = options.attemptTimeoutMs ?? requestTimeoutMs * 4;
  const shared = {
    region: options.region,
    forcePathStyle: options.forcePathStyle,
    maxAttempts,
    retryMode: 'standard',
    // Compatible servers refuse or ignore the newer checksums; SigV4 signs the SHA-256 of every body anyway.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(options.endpoint ? { endpoint: options.endpoint } : {}),
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
  return { requests, reads, readDeadlineMs: maxAttempts * (requestTimeoutMs + retryPauseMs) };
}

import { type AppErrorOptions, NotFoundError, UnavailableError } from '../errors/errors.ts';

export interface BlobInfo {
  readonly key: string;
  readonly storedBytes: number;
  readonly modifiedAt: Date;
}

export interface BlobStat {
  readonly storedBytes: number;
  readonly modifiedAt: Date;
  /** The end of an object lock. */
  readonly lockedUntil?: Date;
}

/** From `start` up to, but not including, `end`. Never empty. */
export interface BlobRange {
  readonly start: number;
  readonly end: number;
}

export interface BlobPage {
  readonly blobs: readonly BlobInfo[];
  /** The `after` of the next page; null on the last one. A page after an empty one may exist. */
  readonly next: string | null;
}

export interface PutOptions {
  readonly signal?: AbortSignal;
  /** Approximate; needed above 40 GiB, because buckets limit the number of parts. */
  readonly expectedBytes?: number;
}

/**
 * All methods throw TypeError for a key that `assertBlobKey` rejects, and BlobStoreUnavailableError when the store fails. Errors from the
 * caller's own body or signal are rethrown unchanged.
 */
export interface BlobStore {
  /**
   * Replaces any older blob, in bounded memory. The blob becomes visible only when complete, and is durable once this resolves. Chunks are
   * not copied, so the body must not change them until they are stored. If the body throws or `signal` fires, nothing becomes visible and
   * no parts remain; a signal after the last byte was committed is ignored. After BlobStoreUnavailableError the complete blob may exist, or
   * may still appear later, even after a delete: the response may have been lost, or the request may still be in flight.
   */
  put(key: string, body: AsyncIterable<Buffer>, options?: PutOptions): Promise<{ storedBytes: number }>;
  /**
   * Opens a blob for one read at the reader's own pace. Iterate it to the end, leave the loop, or fire `signal`; otherwise a socket or
   * descriptor stays open. Throws BlobNotFoundError only if the store is certain that the blob does not exist, and otherwise
   * BlobStoreUnavailableError, also in mid-stream: an end without an error is the blob's end. Reads fewer bytes than `range` only if the
   * blob ends before them.
   */
  open(key: string, options?: { signal?: AbortSignal; range?: BlobRange }): Promise<AsyncIterable<Buffer>>;
  /** Returns null if the store is certain that the blob does not exist. */
  stat(key: string): Promise<BlobStat | null>;
  /** In a store that locks its blobs: also locks a blob of another put. `stat` is its newest one. */
  keepLocked?(key: string, stat: BlobStat): Promise<void>;
  /** A missing blob is not an error. */
  delete(key: string): Promise<void>;
  /**
   * Lists in a stable order chosen by the store. A blob that exists from the first page to the last is listed exactly once. Skips objects
   * whose key is not a blob key. `after` is the `next` of the previous page.
   */
  list(prefix: string, after?: string): Promise<BlobPage>;
  /** Takes up to a few thousand keys. Returns those that the store is certain do not exist. */
  findAbsent(keys: readonly string[]): Promise<string[]>;
  /**
   * Removes unfinished puts of dead processes; in a bucket, to which others may write, only those of keys with one of `prefixes`. Returns
   * their number. Throws the first fault after trying the rest.
   */
  sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number>;
  /** Throws BlobStoreUnavailableError. */
  check(timeoutMs: number): Promise<void>;
  /** Also closes active connections. */
  close(): Promise<void>;
}

export class BlobNotFoundError extends NotFoundError {
  override readonly name = 'BlobNotFoundError';
  override readonly code = 'blob-not-found';

  constructor(key: string, options?: ErrorOptions) {
    super(`blob ${key} does not exist`, options);
  }
}

/** Low cardinality, for logs and metrics. */
export type BlobStoreFault =
  | 'denied'
  | 'full'
  | 'misconfigured'
  | 'throttled'
  | 'timeout'
  | 'unreachable'
  /** An internal error of the store, or less data than it announced. */
  | 'faulty';

/** Whether the blob exists is unknown. */
export class BlobStoreUnavailableError extends UnavailableError {
  override readonly name: string = 'BlobStoreUnavailableError';
  override readonly code = 'blob-store-unavailable';
  readonly fault: BlobStoreFault;

  constructor(fault: BlobStoreFault, message: string, options?: AppErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

const maxKeyLength = 200;
const segmentRule = '[a-z0-9_-][a-z0-9_.-]*';
const keyRule = new RegExp(`^${segmentRule}(?:/${segmentRule})*$`);

export function isBlobKey(key: string): boolean {
  return key.length <= maxKeyLength && keyRule.test(key) && !key.includes('..');
}

/**
 * A key has at most 200 characters out of `a-z 0-9 / _ . -`, no `..`, and no segment that is empty or starts with a dot: HTTP clients,
 * proxies and file systems rewrite other paths. Throws TypeError (a programming error).
 */
export function assertBlobKey(key: string): void {
  if (!isBlobKey(key)) throw new TypeError(`not a blob key: ${JSON.stringify(key)}`);
}

/** An empty prefix is valid. */
export function assertBlobPrefix(prefix: string): void {
  if (prefix !== '') assertBlobKey(prefix.endsWith('/') ? prefix.slice(0, -1) : prefix);
}

import { NotFoundError, UnavailableError } from '../errors/errors.ts';

export interface BlobInfo {
  readonly key: string;
  readonly storedBytes: number;
  readonly modifiedAt: Date;
}

export interface BlobPage {
  readonly blobs: readonly BlobInfo[];
  /** What to pass as `after` for the next page; null on the last one. A page may be empty and yet have a next one. */
  readonly next: string | null;
}

/**
 * Bytes by key. Every method throws TypeError for a key outside the rule of `assertBlobKey`, and
 * BlobStoreUnavailableError for whatever the store does not do; an error of the caller's own body or signal
 * comes back unchanged.
 */
export interface BlobStore {
  /**
   * Stores `body` under `key` in bounded memory and resolves with its size in bytes; an older blob of that key is replaced.
   * The blob is visible only when whole, and durable once this resolves. Chunks are kept without a copy until
   * they are stored: the body must not change them. When the body throws or `signal` fires, nothing is visible
   * and no parts are left; a signal that comes after the last byte was handed over for good is too late, and the put ends as
   * if there were none. After BlobStoreUnavailableError the blob may still be there, whole, or come later, even after a delete:
   * the answer may be what was lost, or the request still on its way.
   */
  put(key: string, body: AsyncIterable<Buffer>, options?: { signal?: AbortSignal }): Promise<{ storedBytes: number }>;
  /**
   * Opens a blob, to be read once, at the reader's own pace; iterate it, leave the loop, or fire `signal`, or a
   * socket or descriptor stays open. Throws BlobNotFoundError only when the store says for certain that the blob is not
   * there, else BlobStoreUnavailableError, in mid-stream too: an end without an error is the end of the blob.
   */
  open(key: string, options?: { signal?: AbortSignal }): Promise<AsyncIterable<Buffer>>;
  /** Size in bytes and time of the last put; null when the store says for certain that the blob is not there. */
  stat(key: string): Promise<{ storedBytes: number; modifiedAt: Date } | null>;
  /** Deletes a blob; one that is not there is no error. */
  delete(key: string): Promise<void>;
  /**
   * One page of the blobs whose keys start with `prefix`, in an order of the store's own that stays the same. A blob
   * that is there from the first page to the last is listed once; what has no blob key is not ours and not listed.
   * `after` is what the page before gave as `next`.
   */
  list(prefix: string, after?: string): Promise<BlobPage>;
  /** Those of `keys`, up to some thousands, of which the store says for certain that they are not there. */
  findAbsent(keys: readonly string[]): Promise<string[]>;
  /** Removes what puts of dead processes left behind, when older than `olderThanMs`; returns how many. */
  sweepUnfinished(olderThanMs: number): Promise<number>;
  /** Asks the store whether it is there, for at most `timeoutMs`. Throws BlobStoreUnavailableError. */
  check(timeoutMs: number): Promise<void>;
  /** Ends connections, idle or not. */
  close(): Promise<void>;
}

/** The store answered, and the blob is not there. */
export class BlobNotFoundError extends NotFoundError {
  override readonly name = 'BlobNotFoundError';
  override readonly code = 'blob-not-found';

  constructor(key: string, options?: ErrorOptions) {
    super(`blob ${key} does not exist`, options);
  }
}

/** Why a store did not do its work; of low cardinality, for logs and metrics. */
export type BlobStoreFault =
  | 'denied'
  | 'full'
  | 'misconfigured'
  | 'throttled'
  | 'timeout'
  | 'unreachable'
  /** The store answered with a fault of its own, or with less than it announced. */
  | 'faulty';

/** The store did not do what it was asked; whether the blob is there is unknown. */
export class BlobStoreUnavailableError extends UnavailableError {
  override readonly name = 'BlobStoreUnavailableError';
  override readonly code = 'blob-store-unavailable';
  readonly fault: BlobStoreFault;

  constructor(fault: BlobStoreFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

const maxKeyLength = 200;
const segment = '[a-z0-9_-][a-z0-9_.-]*';
const keyRule = new RegExp(`^${segment}(?:/${segment})*$`);

/** Whether `key` keeps the rule of `assertBlobKey`. */
export function isBlobKey(key: string): boolean {
  return key.length <= maxKeyLength && keyRule.test(key) && !key.includes('..');
}

/**
 * Throws TypeError, as a fault of the program, unless `key` is at most 200 of `a-z 0-9 / _ . -`, without `..`, and without an empty segment or
 * one that starts with a dot: HTTP clients, proxies and file systems each rewrite such paths in their own way.
 */
export function assertBlobKey(key: string): void {
  if (!isBlobKey(key)) throw new TypeError(`not a blob key: ${JSON.stringify(key)}`);
}

/** Throws TypeError unless `prefix` is empty or could start a blob key. */
export function assertBlobPrefix(prefix: string): void {
  if (prefix !== '') assertBlobKey(prefix.endsWith('/') ? prefix.slice(0, -1) : prefix);
}

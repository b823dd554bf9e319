import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  PutObjectRetentionCommand,
} from '@aws-sdk/client-s3';
import { filterAbsent } from './absent-blobs.ts';
import {
  assertBlobKey,
  assertBlobPrefix,
  BlobNotFoundError,
  type BlobPage,
  type BlobRange,
  type BlobStat,
  type BlobStore,
  BlobStoreUnavailableError,
  isBlobKey,
  type PutOptions,
} from './blob-store.ts';
import { OpenedBlob, withDeadline } from './blob-streams.ts';
import { createS3Clients, type S3Clients, type S3Options, storeNow } from './s3-client.ts';
import { isNoSuchKey, isPastEnd, isS3Error, toUnavailable } from './s3-errors.ts';
import { sendMd5, uploadToS3 } from './s3-upload.ts';

const dayMs = 24 * 3600 * 1000;
/** A renewed lock lasts longer by this share, so that not every backup renews it. */
const lockReserve = 0.25;

/** Unfinished uploads that a sweep leaves behind before it ends. */
const sweepFaultLimit = 16;

/**
 * Besides read, write and delete access, the credentials need s3:ListBucket: without it, S3 returns 403 instead of 404 for a missing key.
 */
export class S3BlobStore implements BlobStore {
  readonly #options: S3Options;
  readonly #clients: S3Clients;
  readonly #prefix: string;

  constructor(options: S3Options) {
    this.#options = options;
    this.#prefix = options.prefix ?? '';
    this.#clients = createS3Clients(options);
  }

  async put(key: string, body: AsyncIterable<Buffer>, options: PutOptions = {}): Promise<{ storedBytes: number }> {
    assertBlobKey(key);
    return uploadToS3(this.#clients.requests, { ...this.#object(key), ...this.#lock() }, body, options);
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    assertBlobKey(key);
    try {
      const found = await this.#get(key, options.signal, options.range);
      if (found === null) throw new BlobNotFoundError(key);
      return found.body;
    } catch (error) {
      if (options.range && isPastEnd(error)) return nothing();
      throw error;
    }
  }

  async stat(key: string): Promise<BlobStat | null> {
    assertBlobKey(key);
    try {
      return statOf(await this.#clients.requests.send(new HeadObjectCommand(this.#object(key))));
    } catch (error) {
      if (!isS3Error(error, 'NotFound')) throw toUnavailable('stat', error);
    }
    // A HEAD response has no body, so only GET can distinguish a missing key from a missing bucket or a proxy's 404.
    const found = await this.#get(key, undefined);
    await found?.body.return();
    return found === null ? null : statOf(found.response);
  }

  async keepLocked(key: string, { lockedUntil }: BlobStat): Promise<void> {
    const { lock } = this.#options;
    if (!lock || (lockedUntil && lockedUntil.getTime() > storeNow(this.#clients) + lock.days * dayMs)) return;
    const { ObjectLockMode: Mode, ObjectLockRetainUntilDate: RetainUntilDate } = this.#lock(1 + lockReserve);
    const command = new PutObjectRetentionCommand({ ...this.#object(key), Retention: { Mode, RetainUntilDate } });
    sendMd5(command);
    await orUnavailable('lock', () => this.#clients.requests.send(command));
  }

  async delete(key: string): Promise<void> {
    assertBlobKey(key);
    try {
      await this.#clients.requests.send(new DeleteObjectCommand(this.#object(key)));
    } catch (error) {
      if (!isNoSuchKey(error)) throw toUnavailable('delete', error);
    }
  }

  async list(prefix: string, after?: string): Promise<BlobPage> {
    assertBlobPrefix(prefix);
    const page = await orUnavailable('list', () =>
      this.#clients.requests.send(
        new ListObjectsV2Command({
          Bucket: this.#options.bucket,
          Prefix: this.#prefix + prefix,
          MaxKeys: this.#options.pageSize ?? 1000,
          StartAfter: after === undefined ? undefined : this.#prefix + after,
        }),
      ),
    );
    // A page of a proxy, or an empty body, must not look like an empty bucket.
    if (page.IsTruncated === undefined) {
      throw new BlobStoreUnavailableError('faulty', 'the blob store returned no listing');
    }
    const found = (page.Contents ?? []).map(({ Key = '', Size, LastModified }) => ({
      key: Key.slice(this.#prefix.length),
      ...statOf({ ContentLength: Size, LastModified }),
    }));
    const last = found.at(-1);
    // Without this check, the walk would never end.
    if (page.IsTruncated === true && (last === undefined || last.key === after)) {
      throw new BlobStoreUnavailableError('faulty', 'the blob store reports more objects, but returned an empty page');
    }
    return {
      blobs: found.filter(({ key }) => isBlobKey(key)),
      next: page.IsTruncated === true ? (last?.key ?? null) : null,
    };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    const sorted = keys.toSorted();
    const [first, last] = [sorted.at(0), sorted.at(-1)];
    if (first === undefined || last === undefined) return [];
    // Listing pages is far cheaper than one request per key. Servers with another sort order may miss keys, which are checked one by one.
    const listed = new Set<string>();
    let after: string | null = first.slice(0, -1);
    do {
      const page: BlobPage = await this.list('', after);
      for (const { key } of page.blobs) listed.add(key);
      after = page.next;
    } while (after !== null && after < last);
    return filterAbsent(
      this,
      keys.filter((key) => !listed.has(key)),
    );
  }

  async sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number> {
    const isOwn = (key: string): boolean => prefixes.some((prefix) => key.startsWith(this.#prefix + prefix));
    const { bucket: Bucket } = this.#options;
    let swept = 0;
    const faults: unknown[] = [];
    // No prefix, because MinIO treats it as a complete key.
    let page: ListMultipartUploadsCommandOutput | undefined;
    do {
      const [KeyMarker, UploadIdMarker] = [page?.NextKeyMarker, page?.NextUploadIdMarker];
      const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
        Bucket,
        KeyMarker,
        UploadIdMarker,
      });
      page = await orUnavailable('sweep', () => this.#clients.requests.send(command));
      const limit = storeNow(this.#clients) - olderThanMs;
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (!Key || !isOwn(Key) || Initiated === undefined || Initiated.getTime() > limit) continue;
        try {
          if (await this.#abortUpload({ Bucket, Key, UploadId })) swept++;
        } catch (error) {
          faults.push(error);
          if (faults.length === sweepFaultLimit) throw error;
        }
      }
      const isSame = page.NextKeyMarker === KeyMarker && page.NextUploadIdMarker === UploadIdMarker;
      if (page.IsTruncated !== false && (!page.IsTruncated || !page.NextKeyMarker || isSame))
        throw new BlobStoreUnavailableError('faulty', 'the blob store returned an incomplete listing of uploads');
    } while (page.IsTruncated);
    if (faults.length > 0) throw faults[0];
    return swept;
  }

  async check(timeoutMs: number): Promise<void> {
    const command = new HeadBucketCommand({ Bucket: this.#options.bucket });
    await orUnavailable('check', () =>
      withDeadline(timeoutMs, undefined, (abortSignal) => this.#clients.requests.send(command, { abortSignal })),
    );
  }

  async close(): Promise<void> {
    this.#clients.requests.destroy();
    this.#clients.reads.destroy();
  }

  /** Concurrent calls all succeed. Throws BlobStoreUnavailableError. */
  async createBucketIfMissing(): Promise<void> {
    const { requests } = this.#clients;
    const bucket = { Bucket: this.#options.bucket };
    try {
      await requests.send(new HeadBucketCommand(bucket));
      return;
    } catch (error) {
      if (!isS3Error(error, 'NotFound')) throw toUnavailable('find bucket', error);
    }
    try {
      await requests.send(new CreateBucketCommand(bucket));
    } catch (error) {
      const exists = isS3Error(error, 'BucketAlreadyOwnedByYou') || isS3Error(error, 'BucketAlreadyExists');
      if (!exists) throw toUnavailable('create bucket', error);
      // Either another process has just created the bucket, or another account owns the name. In the second case this fails.
      await orUnavailable('find bucket', () => requests.send(new HeadBucketCommand(bucket)));
    }
  }

  #lock(times = 1): { ObjectLockMode?: 'GOVERNANCE' | 'COMPLIANCE'; ObjectLockRetainUntilDate?: Date } {
    const { lock } = this.#options;
    if (!lock) return {};
    return {
      ObjectLockMode: lock.mode,
      ObjectLockRetainUntilDate: new Date(storeNow(this.#clients) + lock.days * dayMs * times),
    };
  }

  #object(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#options.bucket, Key: this.#prefix + key };
  }

  /** Returns null if S3 reports that the key does not exist. */
  async #get(
    key: string,
    signal: AbortSignal | undefined,
    range?: BlobRange,
  ): Promise<{ body: OpenedBlob; response: GetObjectCommandOutput } | null> {
    const part = range ? { Range: `bytes=${range.start}-${range.end - 1}` } : {};
    const command = new GetObjectCommand({ ...this.#object(key), ...part });
    try {
      const answer = await withDeadline(this.#clients.readDeadlineMs, signal, (abortSignal) =>
        this.#clients.reads.send(command, { abortSignal }),
      );
      if (!(answer.Body instanceof Readable)) throw new TypeError('response to GetObject has no body');
      if (range && !answer.ContentRange?.startsWith(`bytes ${range.start}-`)) {
        answer.Body.destroy();
        throw new BlobStoreUnavailableError(
          'misconfigured',
          'blob store does not send the requested range of an object',
        );
      }
      const body = new OpenedBlob(answer.Body, {
        signal,
        stallTimeoutMs: this.#options.requestTimeoutMs,
        expectedBytes: answer.ContentLength,
        mapError: (error) => toUnavailable('read', error),
      });
      return { body, response: answer };
    } catch (error) {
      signal?.throwIfAborted();
      if (isNoSuchKey(error)) return null;
      throw toUnavailable('open', error);
    }
  }

  /** Returns false if the upload ended meanwhile. */
  async #abortUpload(upload: {
    Bucket: string;
    Key: string | undefined;
    UploadId: string | undefined;
  }): Promise<boolean> {
    try {
      await this.#clients.requests.send(new AbortMultipartUploadCommand(upload));
      return true;
    } catch (error) {
      if (isS3Error(error, 'NoSuchUpload')) return false;
      throw toUnavailable('sweep', error);
    }
  }
}

async function orUnavailable<T>(operation: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toUnavailable(operation, error);
  }
}

function statOf(response: {
  ContentLength?: number | undefined;
  LastModified?: Date | undefined;
  ObjectLockRetainUntilDate?: Date | undefined;
}): BlobStat {
  const { ContentLength, LastModified, ObjectLockRetainUntilDate: lockedUntil } = response;
  if (ContentLength === undefined || LastModified === undefined) {
    throw new BlobStoreUnavailableError('faulty', 'blob store response has no size or time');
  }
  return { storedBytes: ContentLength, modifiedAt: LastModified, ...(lockedUntil ? { lockedUntil } : {}) };
}

async function* nothing(): AsyncGenerator<Buffer> {}

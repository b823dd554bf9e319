import { Readable } from 'node:stream';
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { BlobStoreUnavailableError } from './blob-store.ts';
import { OpenedBlob, withDeadline } from './blob-streams.ts';
import type { Folder, FolderFile } from './folder.ts';
import { createS3Clients, type S3Clients, type S3Options } from './s3-client.ts';
import { isNoSuchKey, toUnavailable } from './s3-errors.ts';
import { uploadToS3 } from './s3-upload.ts';

/** All methods throw BlobStoreUnavailableError. */
export class S3Folder implements Folder {
  readonly #options: S3Options;
  readonly #clients: S3Clients;
  readonly #prefix: string;

  constructor(options: S3Options) {
    this.#options = options;
    this.#prefix = options.prefix ?? '';
    this.#clients = createS3Clients(options);
  }

  async *list(prefix: string): AsyncGenerator<FolderFile> {
    let token: string | undefined;
    do {
      const page = await this.#clients.requests
        .send(
          new ListObjectsV2Command({
            Bucket: this.#options.bucket,
            Prefix: this.#prefix + prefix,
            ContinuationToken: token,
          }),
        )
        .catch((error: unknown) => {
          throw toUnavailable('list', error);
        });
      // A page of a proxy, or of a server that lacks this kind of listing, must not look like the end of the folder.
      const { IsTruncated, NextContinuationToken } = page;
      const isOver = IsTruncated === false;
      if (!isOver && (IsTruncated !== true || !NextContinuationToken || NextContinuationToken === token))
        throw new BlobStoreUnavailableError('faulty', 'the blob store returned an incomplete listing');
      for (const { Key = '', LastModified, Size } of page.Contents ?? []) {
        if (Key.endsWith('/')) continue;
        yield { name: Key.slice(this.#prefix.length), bytes: Size ?? 0, modifiedAt: LastModified ?? new Date(0) };
      }
      token = isOver ? undefined : NextContinuationToken;
    } while (token !== undefined);
  }

  async open(name: string): Promise<AsyncIterable<Buffer> | null> {
    const { bucket: Bucket, requestTimeoutMs } = this.#options;
    try {
      const { Body, ContentLength } = await withDeadline(this.#clients.readDeadlineMs, undefined, (abortSignal) =>
        this.#clients.reads.send(new GetObjectCommand({ Bucket, Key: this.#prefix + name }), { abortSignal }),
      );
      if (!(Body instanceof Readable)) throw new TypeError('response to GetObject has no body');
      return new OpenedBlob(Body, {
        signal: undefined,
        stallTimeoutMs: requestTimeoutMs,
        expectedBytes: ContentLength,
        mapError: (error) => toUnavailable('read', error),
      });
    } catch (error) {
      if (isNoSuchKey(error)) return null;
      throw toUnavailable('open', error);
    }
  }

  async write(name: string, body: AsyncIterable<Buffer>, signal?: AbortSignal): Promise<void> {
    const target = { Bucket: this.#options.bucket, Key: this.#prefix + name };
    await uploadToS3(this.#clients.requests, target, body, signal ? { signal } : {});
  }

  async delete(name: string): Promise<void> {
    const target = { Bucket: this.#options.bucket, Key: this.#prefix + name };
    await this.#clients.requests.send(new DeleteObjectCommand(target)).catch((error: unknown) => {
      // S3 itself reports no error here, but other servers may.
      if (isNoSuchKey(error)) return;
      throw toUnavailable('delete', error);
    });
  }

  async close(): Promise<void> {
    this.#clients.requests.destroy();
    this.#clients.reads.destroy();
  }
}

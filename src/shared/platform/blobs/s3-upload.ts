import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  type CompleteMultipartUploadCommandOutput,
  DeleteObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  type PutObjectRetentionCommand,
  type S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { BlobStoreUnavailableError, type PutOptions } from './blob-store.ts';
import { PutBody } from './blob-streams.ts';
import { toUnavailable } from './s3-errors.ts';

const mib = 1024 * 1024;
/** The minimum of S3. */
const smallestPart = 5 * mib;
/** Half of S3's maximum, because sizes are estimates. */
const expectedParts = 5_000;
/** Bounds memory. Objects can still be as large as 625 GiB. */
const largestPart = 64 * mib;
/** With the part being filled and its copy, one put holds about four parts in memory. */
const concurrentParts = 2;

export function partBytesOf(expectedBytes: number): number {
  return Math.min(Math.max(smallestPart, Math.ceil(expectedBytes / expectedParts / mib) * mib), largestPart);
}

/**
 * Stores `body` with one PutObject if it fits into a part, otherwise with a multipart upload. Rejects with the reason of `signal`, the
 * body's own error or BlobStoreUnavailableError, after aborting the multipart upload.
 *
 * Each request's signature covers its bytes, but a server may lose bytes when it joins the parts, as versitygw does on a full disk.
 * Therefore the object's size is compared.
 *
 * `Upload.abort` is not used: it rejects before its cleanup, waits for a body that is itself waiting, and lets a PutObject in flight
 * complete and become visible.
 */
export async function uploadToS3(
  client: S3Client,
  target: Omit<PutObjectCommandInput, 'Body'>,
  body: AsyncIterable<Buffer>,
  { expectedBytes = 0, signal }: PutOptions,
): Promise<{ storedBytes: number }> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const chunks = new PutBody(body, stop.signal);
  const upload = new Upload({
    client: stoppableClient(client, stop, (etag) => assertWhole(client, target, { bytes: chunks.bytes, etag })),
    params: { ...target, Body: Readable.from(chunks, { highWaterMark: 1 }) },
    partSize: partBytesOf(expectedBytes),
    queueSize: concurrentParts,
    leavePartsOnError: false,
  });
  try {
    await upload.done();
    return { storedBytes: chunks.bytes };
  } catch (error) {
    // `Upload` may throw the error of its cleanup, which hides the original error.
    if (chunks.failure !== undefined) throw chunks.failure.error;
    stop.signal.throwIfAborted();
    throw toUnavailable('put', error);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** If the object lacks bytes that were sent, deletes it and throws BlobStoreUnavailableError. */
async function assertWhole(
  client: S3Client,
  { Bucket, Key }: Pick<PutObjectCommandInput, 'Bucket' | 'Key'>,
  { bytes, etag }: { readonly bytes: number; readonly etag: string | undefined },
): Promise<void> {
  const { ContentLength, ETag } = await client.send(new HeadObjectCommand({ Bucket, Key }));
  if (ContentLength === bytes) return;
  // Another put has replaced the object since.
  if (etag !== undefined && ETag !== undefined && bare(etag) !== bare(ETag)) return;
  await client.send(new DeleteObjectCommand({ Bucket, Key }));
  throw new BlobStoreUnavailableError('faulty', `blob store kept ${ContentLength} of ${bytes} bytes`);
}

const bare = (etag: string): string => etag.replaceAll('"', '');

/**
 * After `stop` fires, sends only the abort of the multipart upload. A failed request fires `stop`, so that no other part waits for a body
 * that is itself waiting. Requests in flight are not cancelled: S3 may store a part whose request was cut even after the abort. A completed
 * multipart upload is checked. Objects with a lock need the MD5 of their bytes as a header: AWS and others refuse them otherwise.
 */
function stoppableClient(
  client: S3Client,
  stop: AbortController,
  check: (etag: string | undefined) => Promise<void>,
): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]): Promise<unknown> => {
    if (!(command instanceof AbortMultipartUploadCommand)) stop.signal.throwIfAborted();
    try {
      const answer = await sendWithMd5(client, command, stop.signal);
      if (command instanceof CompleteMultipartUploadCommand) {
        await check((answer as CompleteMultipartUploadCommandOutput).ETag);
      }
      return answer;
    } catch (error) {
      stop.abort(toUnavailable('put', error));
      throw error;
    }
  };
  return Object.create(client, { send: { value: send } });
}

type AnyCommand = Parameters<S3Client['send']>[0];

/** The buckets of these clients lock objects by default. Only a refusal reveals this. */
const lockingClients = new WeakSet<S3Client>();

async function sendWithMd5(client: S3Client, command: AnyCommand, stop: AbortSignal): Promise<unknown> {
  if (!(command instanceof PutObjectCommand || command instanceof UploadPartCommand)) return client.send(command);
  const { input } = command;
  const hasLock = 'ObjectLockMode' in input && input.ObjectLockMode !== undefined;
  if (hasLock || lockingClients.has(client)) addMd5(command);
  try {
    return await client.send(command as AnyCommand);
  } catch (error) {
    if (input.ContentMD5 !== undefined || !wantsMd5(error)) throw error;
    lockingClients.add(client);
    stop.throwIfAborted();
    addMd5(command);
    return client.send(command as AnyCommand);
  }
}

/** AWS reports this in the message, other servers by the code MissingContentMD5. */
function wantsMd5(error: unknown): boolean {
  return error instanceof S3ServiceException && /Content-?MD5/i.test(`${error.name} ${error.message}`);
}

/** `Upload` has already read the body into a buffer. */
function addMd5({ input }: PutObjectCommand | UploadPartCommand): void {
  if (input.Body instanceof Uint8Array) input.ContentMD5 = createHash('md5').update(input.Body).digest('base64');
}

/** For a command whose body the client builds. The MD5 replaces a checksum that these servers do not support. */
export function sendMd5(command: PutObjectRetentionCommand): void {
  command.middlewareStack.add(
    (next) => (args) => {
      const { body, headers } = args.request as { body: string; headers: Record<string, string> };
      for (const name of Object.keys(headers)) if (/^x-amz-(sdk-)?checksum/i.test(name)) delete headers[name];
      headers['content-md5'] = createHash('md5').update(body).digest('base64');
      return next(args);
    },
    { step: 'build', priority: 'low', name: 'sendMd5' },
  );
}

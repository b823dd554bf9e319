import { Readable } from 'node:stream';
import { AbortMultipartUploadCommand, type PutObjectCommandInput, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { PutBody } from './blob-streams.ts';
import { toUnavailable } from './s3-errors.ts';

const partBytes = 5 * 1024 * 1024;
/** Concurrent part uploads. With the part being filled and its copy, one put holds about four parts in memory. */
const concurrentParts = 2;

/**
 * Stores `body` at `target`: with one PutObject if it fits into a part, otherwise as a multipart upload. Resolves with
 * the size in bytes. Rejects with the reason of `signal`, the body's own error or BlobStoreUnavailableError, after the
 * multipart upload was aborted.
 *
 * `Upload.abort` is not used: it rejects before its cleanup, waits for a body that is itself waiting, and lets a
 * PutObject in flight complete and become visible.
 */
export async function uploadToS3(
  client: S3Client,
  target: Omit<PutObjectCommandInput, 'Body'>,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): Promise<{ storedBytes: number }> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const chunks = new PutBody(body, stop.signal);
  const upload = new Upload({
    client: stoppableClient(client, stop),
    params: { ...target, Body: Readable.from(chunks, { highWaterMark: 1 }) },
    partSize: partBytes,
    queueSize: concurrentParts,
    leavePartsOnError: false,
  });
  try {
    await upload.done();
    return { storedBytes: chunks.bytes };
  } catch (error) {
    // `Upload` may throw the failure of its cleanup, which hides the original error.
    if (chunks.failure !== undefined) throw chunks.failure.error;
    stop.signal.throwIfAborted();
    throw toUnavailable('put', error);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * Wraps `client`: after `stop` fires it sends nothing except the abort of the multipart upload, and a failed request
 * fires `stop`, so that no other part waits for a body that is itself waiting. Requests in flight are not cancelled:
 * S3 may store a part whose request was cut even after the upload was aborted.
 */
function stoppableClient(client: S3Client, stop: AbortController): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]): Promise<unknown> => {
    if (!(command instanceof AbortMultipartUploadCommand)) stop.signal.throwIfAborted();
    try {
      return await client.send(command);
    } catch (error) {
      stop.abort(toUnavailable('put', error));
      throw error;
    }
  };
  return Object.create(client, { send: { value: send } });
}

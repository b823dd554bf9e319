import { Readable } from 'node:stream';
import { AbortMultipartUploadCommand, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { PutBody } from './blob-streams.ts';
import { toUnavailable } from './s3-errors.ts';

const partBytes = 5 * 1024 * 1024;
/** Parts on the way at once; with the part being filled and its copy, one put holds about four parts in memory. */
const partsAtOnce = 2;

/**
 * Stores `body` at `target`: one PutObject up to one part, a multipart upload above. Resolves with the size in bytes.
 * Rejects with the reason of `signal`, the body's own error or BlobStoreUnavailableError, after the parts have been given up.
 *
 * `Upload` has an abort of its own that is not used: it rejects before its cleanup, waits for a body that waits,
 * and lets a PutObject under way go on to become visible.
 */
export async function uploadToS3(
  client: S3Client,
  target: { Bucket: string; Key: string },
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
    queueSize: partsAtOnce,
    leavePartsOnError: false,
  });
  try {
    await upload.done();
    return { storedBytes: chunks.bytes };
  } catch (error) {
    // What `Upload` throws may be the failure of its cleanup, which hides what came first.
    if (chunks.failure !== undefined) throw chunks.failure.error;
    stop.signal.throwIfAborted();
    throw toUnavailable('put', error);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * `client` that sends nothing more once `stop` fired, except the end of the multipart upload, and fires `stop` when a
 * request fails, so that no other part waits for a body that waits. What has been sent runs to its end: S3
 * may still store a part whose request was cut, after the upload was given up.
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

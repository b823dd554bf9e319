import { untilBlobStore } from '../shared/platform/blobs/blob-start.ts';
import { S3BlobStore } from '../shared/platform/blobs/s3-blob-store.ts';
import { type Config, ConfigError } from '../shared/platform/config/config.ts';
import { createProcessLogger } from './process-logger.ts';

/** Waits for the S3 server as servers do at startup. */
export async function createBucket(config: Config): Promise<void> {
  const { blobs } = config;
  if (blobs.kind !== 's3')
    throw new ConfigError('Invalid settings:\n  HOLDFAST_S3_BUCKET: needed to create the bucket');
  await using store = closing(new S3BlobStore(blobs));
  const attempt = () => store.createBucketIfMissing();
  await untilBlobStore(blobs, attempt, {
    waitMs: config.startWaitMs,
    logger: createProcessLogger(config),
  });
  console.log(`The bucket ${blobs.bucket} exists.`);
}

function closing(store: S3BlobStore): S3BlobStore & AsyncDisposable {
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

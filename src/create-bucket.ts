import { setTimeout as sleep } from 'node:timers/promises';
import { BlobStoreUnavailableError } from './shared/platform/blobs/blob-store.ts';
import { S3BlobStore } from './shared/platform/blobs/s3-blob-store.ts';
import { type Config, ConfigError } from './shared/platform/config/config.ts';

const patienceMs = 60_000;
const pauseMs = 1_000;
/** Faults of a server that is still starting. */
const passing = new Set(['unreachable', 'timeout', 'throttled', 'faulty']);

/** Makes the bucket of HOLDFAST_S3_BUCKET unless it is there, waiting a minute for the S3 server. Returns the exit code. */
export async function createBucket({ blobs }: Config): Promise<number> {
  if (blobs.kind !== 's3')
    throw new ConfigError('These settings are wrong:\n  HOLDFAST_S3_BUCKET: needed to create the bucket');
  await using store = closing(new S3BlobStore(blobs));
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      await store.createBucketIfMissing();
      console.log(`The bucket ${blobs.bucket} is there.`);
      return 0;
    } catch (error) {
      const waits = error instanceof BlobStoreUnavailableError && passing.has(error.fault) && Date.now() < deadline;
      if (!waits) throw error;
      console.error(`holdfast: ${error.message}; trying again`);
      await sleep(pauseMs);
    }
  }
}

function closing(store: S3BlobStore): S3BlobStore & AsyncDisposable {
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

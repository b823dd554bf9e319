import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import type { S3Server } from '../../testkit/s3-server.ts';
import type { StoreUnderTest } from './blob-store-suite.ts';

/** A store on an S3 server, for the suite of all blob stores. */
export async function startS3Store(server: S3Server): Promise<StoreUnderTest> {
  const { endpoint, region, accessKeyId, secretAccessKey } = server;
  const shared = { endpoint, region, forcePathStyle: true };
  const options = {
    ...shared,
    accessKeyId,
    secretAccessKey,
    bucket: 'blobs',
    prefix: 'tests/',
    requestTimeoutMs: 60_000,
    connectTimeoutMs: 60_000,
  };
  const store = new S3BlobStore(options);
  const smallPages = new S3BlobStore({ ...options, pageSize: 10 });
  await store.createBucketIfMissing();
  const client = new S3Client({ ...shared, credentials: { accessKeyId, secretAccessKey } });
  const target = (key: string) => ({ Bucket: 'blobs', Key: `tests/${key}` });
  return {
    store,
    smallPages,
    async countUnfinished(key) {
      // MinIO lists only the uploads of one key.
      const page = await client.send(new ListMultipartUploadsCommand({ Bucket: 'blobs', Prefix: `tests/${key}` }));
      return page.Uploads?.length ?? 0;
    },
    async leaveUnfinished(key) {
      await client.send(new CreateMultipartUploadCommand(target(key)));
    },
    async close() {
      client.destroy();
      await smallPages.close();
      await store.close();
    },
  };
}

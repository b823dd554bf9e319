import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3Server } from '../../e2e/support/s3-server.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { describeBlobStore, type StoreUnderTest } from './blob-store-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

async function startFiles(): Promise<StoreUnderTest> {
  const directory = await mkdtemp(path.join(tmpdir(), 'holdfast-blobs-'));
  const unfinished = path.join(directory, 'unfinished');
  return {
    store: await FileBlobStore.open({ directory }),
    smallPages: await FileBlobStore.open({ directory, pageSize: 10 }),
    countUnfinished: async () => (await readdir(unfinished)).length,
    leaveUnfinished: () => writeFile(path.join(unfinished, 'killed.part'), 'half'),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

async function startS3Store(server: S3Server): Promise<StoreUnderTest> {
  const { endpoint, region, accessKeyId, secretAccessKey } = server;
  const shared = { endpoint, region, forcePathStyle: true };
  const options = {
    ...shared,
    accessKeyId,
    secretAccessKey,
    bucket: 'blobs',
    prefix: 'tests/',
    requestTimeoutMs: 5_000,
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
      // MinIO lists the uploads of one key only.
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

describeBlobStore('files', startFiles);
await describeOnS3('minio', (server) => describeBlobStore('S3 on MinIO', () => startS3Store(server())));
await describeOnS3('versitygw', (server) => describeBlobStore('S3 on versitygw', () => startS3Store(server())));

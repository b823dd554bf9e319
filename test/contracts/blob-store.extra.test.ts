import { describeBlobStore } from './blob-store-suite.ts';
import { startS3Store } from './s3-blob-store-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

await describeOnS3('minio', (server) => describeBlobStore('S3 on MinIO', () => startS3Store(server())));

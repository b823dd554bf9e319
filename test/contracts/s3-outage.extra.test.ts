import { describeOutages } from './s3-outage-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

await describeOnS3('minio', (server) => describeOutages('MinIO', server));

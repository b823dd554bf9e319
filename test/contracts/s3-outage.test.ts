import { describeOutages } from './s3-outage-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

await describeOnS3('versitygw', (server) => describeOutages('versitygw', server));

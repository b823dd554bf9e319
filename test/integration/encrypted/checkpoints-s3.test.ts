import { runInCluster } from '../../support/cluster-app.ts';

const settings = { HOLDFAST_ENCRYPT_DOCUMENTS: 'true', HOLDFAST_INLINE_BYTES: '1' };
await runInCluster({ s3: 'versitygw', settings }, () => import('../checkpoints.test.ts'));

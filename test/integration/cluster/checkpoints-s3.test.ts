import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster(
  { s3: 'versitygw', settings: { HOLDFAST_INLINE_BYTES: '1' } },
  () => import('../checkpoints.test.ts'),
);

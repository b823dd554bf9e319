import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../checkpoints.test.ts'));

import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../fold-point-due.test.ts'));

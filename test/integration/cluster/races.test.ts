import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../races.test.ts'));

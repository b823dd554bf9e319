import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../leases.test.ts'));

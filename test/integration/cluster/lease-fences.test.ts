import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../lease-fences.test.ts'));

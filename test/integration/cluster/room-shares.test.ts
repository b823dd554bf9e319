import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../room-shares.test.ts'));

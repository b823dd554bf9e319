import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../in-flight-shares.test.ts'));

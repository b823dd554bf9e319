import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../snapshot-due.test.ts'));

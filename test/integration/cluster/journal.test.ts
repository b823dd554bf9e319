import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../journal.test.ts'));

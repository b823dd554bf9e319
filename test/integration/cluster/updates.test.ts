import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../updates.test.ts'));

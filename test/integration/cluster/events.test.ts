import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../events.test.ts'));

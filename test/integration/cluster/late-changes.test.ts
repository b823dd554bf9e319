import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../late-changes.test.ts'));

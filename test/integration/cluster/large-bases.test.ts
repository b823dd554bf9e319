import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../large-bases.test.ts'));

import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../import-export.test.ts'));

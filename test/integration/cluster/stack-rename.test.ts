import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({}, () => import('../stack-rename.test.ts'));

import { runInCluster } from '../../support/cluster-app.ts';

await runInCluster({ jobAttempts: 2 }, () => import('../request-lines.test.ts'));

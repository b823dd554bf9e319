import { clusterVariables } from './running-cluster.ts';

// Runs before each test file of the project `e2e-cluster`: its server is the cluster.

const { env } = process;
const missing = env[clusterVariables.missing];
if (missing === undefined) {
  env['HOLDFAST_TEST_URL'] = env[clusterVariables.url];
  env['HOLDFAST_TEST_TOKEN'] = env[clusterVariables.token];
  env['HOLDFAST_TEST_REVIEWER_TOKEN'] = env[clusterVariables.reviewerToken];
} else {
  env['HOLDFAST_TEST_LEFT_OUT'] = missing;
}

import type { Cluster } from '../../testkit/cluster.ts';

const key = Symbol.for('holdfast.e2e.cluster');
const holder = globalThis as unknown as Record<symbol, Cluster | undefined>;

/**
 * State that the run's set-up passes to its tear-down: Jest loads their modules separately, so it is on the global
 * object.
 */
export const runningCluster = {
  set: (cluster: Cluster): void => {
    holder[key] = cluster;
  },
  get: (): Cluster | undefined => holder[key],
};

/** Where the set-up describes the cluster to the tests, which run in other processes. */
export const clusterVariables = {
  url: 'HOLDFAST_E2E_CLUSTER_URL',
  token: 'HOLDFAST_E2E_CLUSTER_TOKEN',
  reviewerToken: 'HOLDFAST_E2E_CLUSTER_REVIEWER_TOKEN',
  missing: 'HOLDFAST_E2E_CLUSTER_MISSING',
} as const;

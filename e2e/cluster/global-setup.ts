import { startCluster } from '../../testkit/cluster.ts';
import { ToolUnavailableError } from '../../testkit/toolchain/command.ts';
import { clusterVariables, runningCluster } from './running-cluster.ts';

/** Starts the cluster whose proxy the end-to-end tests of the project `e2e-cluster` use. */
export default async function globalSetup(): Promise<void> {
  try {
    const cluster = await startCluster({
      prepared: true,
      onCrash: (part) => console.error(`cluster: ${part.name} has ended by itself:\n${part.log.slice(-3_000)}`),
    });
    runningCluster.set(cluster);
    process.env[clusterVariables.url] = cluster.url;
    process.env[clusterVariables.token] = cluster.token;
    process.env[clusterVariables.reviewerToken] = cluster.reviewerToken;
  } catch (error) {
    const inCi = (process.env['CI'] ?? '') !== '';
    if (!(error instanceof ToolUnavailableError) || inCi) throw error;
    process.env[clusterVariables.missing] = error.message;
  }
}

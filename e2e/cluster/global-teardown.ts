import { runningCluster } from './running-cluster.ts';

/** Prints what the processes of the cluster logged as errors, and stops them. */
export default async function globalTeardown(): Promise<void> {
  const cluster = runningCluster.get();
  if (!cluster) return;
  for (const part of [...cluster.apis, ...cluster.workers]) {
    const faults = part.log.split('\n').filter((line) => /^\{"level":"(error|fatal)"/.test(line));
    for (const line of faults) console.error(`cluster: ${part.name} logged ${line}`);
  }
  await cluster.stop();
}

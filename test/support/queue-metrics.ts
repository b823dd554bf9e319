import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/** Calls that wait for a stack at this replica. */
function waitingAt({ context }: TestApp): number {
  const metric = context.metrics.registry.getSingleMetric('holdfast_update_queue_calls') as unknown as {
    collect(): void;
    hashMap: Record<string, { value: number }>;
  };
  metric.collect();
  return metric.hashMap['']?.value ?? 0;
}

/** Waits until so many calls wait at these replicas together. */
export function untilWaiting(apps: readonly TestApp[], count: number): Promise<void> {
  return until(() => apps.reduce((sum, app) => sum + waitingAt(app), 0) === count, `${count} calls wait`);
}
